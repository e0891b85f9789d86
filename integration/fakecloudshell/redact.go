package fakecloudshell

import (
	"fmt"
	"strings"
)

// redacted stands where a secret was.
const redacted = "REDACTED"

// redactBody is a request's body without passwords and tokens, otherwise byte for
// byte. Of a body that is not well-formed, root is nil, only the length is told:
// nobody knows where its secrets are.
func redactBody(body []byte, root *element) string {
	if root == nil {
		return fmt.Sprintf("(%d bytes that cannot be parsed)", len(body))
	}
	var public strings.Builder
	at := 0
	root.walk(func(e *element) {
		if secret(e.name) && e.start >= at && e.end > e.start {
			public.Write(body[at:e.start])
			public.WriteString(redacted)
			at = e.end
		}
	})
	public.Write(body[at:])
	return public.String()
}

func secret(name string) bool {
	return strings.EqualFold(name, "password") || strings.EqualFold(name, "token")
}
