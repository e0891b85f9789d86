package mongolab

import (
	"encoding/hex"
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Command is one command of a client, as the proxy received it.
type Command struct {
	// N is how many commands came before, on all connections, since the last call of
	// [Server.Inject]. Upkeep is not counted.
	N int
	// Nth is how many commands of this name came before, likewise.
	Nth int
	// Name is the command's: "update", "insert", "find", "findAndModify", ...
	Name string
	// Session is the client's session (lsid.id, in hexadecimal digits), empty if
	// there is none.
	Session string
	// TxnNumber numbers the writes of a session that the driver may repeat; 0 if it
	// will not repeat this one.
	TxnNumber int64
	// Upkeep says that the driver sent this by itself: the hello that opens a
	// connection or watches the server, what logs in, what ends sessions. It comes
	// when the driver likes, and has the numbers -1.
	Upkeep bool
}

// parseCommand reads a command from a request.
func parseCommand(m message) (Command, error) {
	body, err := m.document()
	if err != nil {
		return Command{}, err
	}
	first, err := body.IndexErr(0)
	if err != nil {
		return Command{}, errors.New("a command without a name")
	}
	c := Command{Name: first.Key(), Session: session(body)}
	c.TxnNumber, _ = body.Lookup("txnNumber").AsInt64OK()
	c.Upkeep = c.Session == "" && isUpkeep(c.Name)
	return c, nil
}

func session(body bson.Raw) string {
	_, id, _ := body.Lookup("lsid", "id").BinaryOK()
	return hex.EncodeToString(id)
}

func isUpkeep(name string) bool {
	return isHello(name) || name == "saslStart" || name == "saslContinue" || name == "endSessions"
}

// isHello knows the command by its old names, too.
func isHello(name string) bool { return name == "hello" || strings.EqualFold(name, "isMaster") }
