package cloudshell

import (
	"fmt"
	"io"
	"strings"
)

// Secret is a password or a token. It does not show itself in messages, logs or
// JSON, whatever verb they use. It is comparable with itself only.
type Secret struct{ text *string } // a pointer, because fmt shows the fields of unexported fields without asking

// NewSecret keeps text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// reveal is for the request that needs it.
func (s Secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// hidden stands for a secret.
const hidden = "[secret]"

// IsZero says whether there is no secret.
func (s Secret) IsZero() bool { return s.text == nil }

// String does not tell.
func (s Secret) String() string { return hidden }

// Format implements fmt.Formatter: no verb tells.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, hidden) }

// MarshalText implements encoding.TextMarshaler, and so serves JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// scrub removes the secret from a text, such as an error that a server wrote.
func (s Secret) scrub(text string) string {
	if s.IsZero() {
		return text
	}
	return strings.ReplaceAll(text, s.reveal(), hidden)
}
