package fakecloudshell_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
)

// shaped is what an add is answered with.
func shaped(t *testing.T, shape fakecloudshell.Shape) (reply, error) {
	t.Helper()
	_, _, r, err := struck(t, fakecloudshell.Fault{Shape: shape})
	require.Equal(t, 200, r.Status)
	return r, err
}

func TestShapesThatCannotBeRead(t *testing.T) {
	for name, shape := range map[string]fakecloudshell.Shape{
		"cut": fakecloudshell.Cut, "emptied": fakecloudshell.Emptied, "webpage": fakecloudshell.Webpage, "utf-16": fakecloudshell.LabelledUTF16,
	} {
		_, err := shaped(t, shape)
		require.Error(t, err, name)
	}
	r, err := shaped(t, fakecloudshell.LabelledUTF16)
	require.ErrorContains(t, err, "utf-16")
	require.True(t, strings.HasPrefix(r.Body, `<?xml version="1.0" encoding="utf-16"?>`))
}

func TestShapesThatCanBeRead(t *testing.T) {
	r, err := shaped(t, fakecloudshell.WithMark)
	require.NoError(t, err)
	require.True(t, r.Success)
	require.True(t, strings.HasPrefix(r.Body, "\xef\xbb\xbf<?xml"))

	r, err = shaped(t, fakecloudshell.Padded(1<<20))
	require.NoError(t, err)
	require.True(t, r.Success)
	require.Greater(t, len(r.Body), 1<<20)
}

func TestSuccessAsADigit(t *testing.T) {
	r, err := shaped(t, fakecloudshell.SuccessAsDigit)
	require.NoError(t, err)
	require.True(t, r.Success)
	require.Contains(t, r.Body, ` Success="1" `)
	_, _, r, err = struck(t, fakecloudshell.Fault{Shape: fakecloudshell.SuccessAsDigit, Failure: &fakecloudshell.Failure{Code: 100}})
	require.NoError(t, err)
	require.False(t, r.Success)
	require.Contains(t, r.Body, ` Success="0" `)
}

func TestASparseAnswer(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{Fault: fakecloudshell.Fault{Shape: fakecloudshell.Sparse}}))
	r := p.must(t, "GetReservationDetails", details)
	require.NotContains(t, r.Body, "Services")
	require.NotContains(t, r.Body, "Topologies")
	p.must(t, addMutex, mutex(noOwner))
	r = p.must(t, "GetReservationDetails", details+fresh)
	require.Len(t, r.Info.Description.Services[0].Attributes, 1)
	require.NotContains(t, r.Body, "Value")
}

func TestAReferenceToNull(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{Fault: fakecloudshell.Fault{Shape: fakecloudshell.WithNull}}))
	r, err := p.call(within(t), "GetReservationDetails", details)
	require.ErrorContains(t, err, "illegal character")
	require.Equal(t, 1, strings.Count(r.Body, `"&#x0;`))
}

func TestFailuresInOtherWords(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	p.must(t, addMutex, mutex(noOwner))
	shape := func(s fakecloudshell.Shape) reply {
		server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{Fault: fakecloudshell.Fault{Shape: s}}))
		r, err := p.call(within(t), addMutex, mutex(noOwner))
		require.NoError(t, err)
		require.False(t, r.Success)
		require.Nil(t, r.Error)
		return r
	}
	require.Equal(t, 100, shape(fakecloudshell.WithoutError).ErrorCode)
	r := shape(fakecloudshell.FailedCommand)
	require.Zero(t, r.ErrorCode)
	require.Equal(t, "CommandExecutionFailedResultInfo", r.Info.Type)
	server.Inject(nil)
	p.must(t, "RemoveServicesFromReservation", removing("MUTEX"))
	require.Zero(t, shape(fakecloudshell.FailedCommand).ErrorCode, "a success becomes a failure too")
}

// A client that reads without a limit reads until its memory is full.
func TestAnAnswerWithoutEnd(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{Fault: fakecloudshell.Fault{Reply: fakecloudshell.Endless}}))
	request, err := p.request(within(t), "/ResourceManagerApiService/GetReservationDetails", "<GetReservationDetails>"+details+"</GetReservationDetails>")
	require.NoError(t, err)
	answer, err := p.client.Do(request)
	require.NoError(t, err)
	start := make([]byte, len("<?xml"))
	_, err = io.ReadFull(answer.Body, start)
	require.NoError(t, err)
	require.Equal(t, "<?xml", string(start))
	_, err = io.CopyN(io.Discard, answer.Body, 10<<20)
	require.NoError(t, err)
	answer.Body.Close()
	require.NoError(t, server.Wait(within(t), func(log []fakecloudshell.Request) bool { return log[1].Done }))
}
