package console

import "github.com/xrash/smetrics"

// Nearest returns the name most similar to what was typed; "" if none is similar.
func Nearest(typed string, names []string) (name string) {
	const most = 2 // wrong letters
	least := most + 1
	for _, each := range names {
		if wrong := smetrics.WagnerFischer(typed, each, 1, 1, 1); wrong < least && wrong < len(typed) {
			name, least = each, wrong
		}
	}
	return name
}
