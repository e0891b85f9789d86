package console

import "github.com/xrash/smetrics"

// Nearest is the name that is most like what was typed; "" if none is.
func Nearest(typed string, names []string) (name string) {
	const most = 2 // letters that are wrong
	least := most + 1
	for _, each := range names {
		if wrong := smetrics.WagnerFischer(typed, each, 1, 1, 1); wrong < least && wrong < len(typed) {
			name, least = each, wrong
		}
	}
	return name
}
