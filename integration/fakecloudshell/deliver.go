package fakecloudshell

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// pause waits as a fault says, or until the client has gone away, if that counts,
// or the server closes. Then the request ends here.
func (x *exchange) pause(p Pause, gone <-chan struct{}) {
	if p == (Pause{}) {
		return
	}
	var over <-chan time.Time
	if p.For > 0 {
		timer := time.NewTimer(p.For)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-p.Until:
	case <-gone:
		panic(http.ErrAbortHandler)
	case <-x.closing:
		panic(http.ErrAbortHandler)
	}
}

// deliver sends an answer, as far as the fault lets it.
func (x *exchange) deliver(w http.ResponseWriter, a answer) {
	x.pause(Pause{For: x.latency / 2}, x.gone)
	x.pause(x.fault.HoldReply, x.gone)
	if x.fault.Status != 0 {
		a = plain(x.fault.Status, http.StatusText(x.fault.Status))
	}
	switch x.fault.Reply {
	case Dropped:
		panic(http.ErrAbortHandler)
	case Withheld:
		x.waitForClient()
	}
	x.note(func(r *Request) { r.Status = a.status })
	w.Header().Set("Content-Type", a.media)
	switch x.fault.Reply {
	case Torn:
		x.tear(w, a)
	case Endless:
		x.goOn(w, a)
	default:
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body) // a client that has gone away is no concern of ours
	}
}

func (x *exchange) waitForClient() {
	select {
	case <-x.gone:
	case <-x.closing:
	}
	panic(http.ErrAbortHandler)
}

// tear promises the whole answer and sends half of it.
func (x *exchange) tear(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(Cut(a.body))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// goOn sends the answer but for its last end tag, and then spaces.
func (x *exchange) goOn(w http.ResponseWriter, a answer) {
	w.WriteHeader(a.status)
	_, err := w.Write(bytes.TrimSuffix(a.body, []byte("</Response>")))
	spaces := bytes.Repeat([]byte(" "), 64<<10)
	for err == nil {
		select {
		case <-x.closing:
			panic(http.ErrAbortHandler)
		default:
			_, err = w.Write(spaces)
		}
	}
	panic(http.ErrAbortHandler)
}
