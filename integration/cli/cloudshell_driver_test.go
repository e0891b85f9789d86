package cli_test

import (
	"archive/zip"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock/cloudshell"
)

// driverDir holds the files that the documentation offers to authors of drivers.
const driverDir = "../../docs/cloudshell"

// driver returns a station whose user has only the token of a running command.
func driver(t *testing.T) (*station, *fakecloudshell.Server, *fakecloudshell.Command) {
	t.Helper()
	server := newCloudshell(t, fakecloudshell.HTTP)
	command, err := server.RunCommand("admin")
	require.NoError(t, err)
	s := newStation(t, cloudshell.EnvToken+"="+command.Token(),
		fmt.Sprintf("MULTILOCK_SOURCE=cloudshell://%s/%s?scheme=http%s", server.Address(), sandbox, quick))
	s.secrets = append(s.secrets, command.Token())
	return s, server, command
}

// A driver without contexts in its environment passes only the token; the URL has the host and the
// reservation. Jobs do not get the token.
func TestCloudshellTokenOfADriver(t *testing.T) {
	t.Parallel()
	s, server, command := driver(t)
	require.NotContains(t, s.must("run", "--", "env"), cloudshell.EnvToken)
	token := strings.TrimSpace(s.must("acquire", "--pid", fmt.Sprint(os.Getpid())))
	require.Contains(t, aliases(server), "MUTEX")
	s.must("release", "--token", token)
	require.NotContains(t, aliases(server), "MUTEX")
	command.End()
	got := s.run("status")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "the token ends with the command that got it")

	got = s.with(cloudshell.EnvToken + "=").run("status")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "put the token of a running command into "+cloudshell.EnvToken)
}

// script runs Python code with a driver's context, as CloudShell passes it.
func (s *station) script(server *fakecloudshell.Server, token, code string) *exec.Cmd {
	head := fmt.Sprintf(`
import os, signal, sys
from types import SimpleNamespace as Object
from multilock_driver import sandbox_lock, LockError, HELD
context = Object(
    connectivity=Object(server_address=%q, cloudshell_api_scheme="http", admin_auth_token=%q),
    reservation=Object(reservation_id=%q, domain="Global"))
`, server.Address(), token, sandbox)
	cmd := s.shell("exec python3 -c \"$CODE\"")
	path, err := filepath.Abs(driverDir)
	require.NoError(s, err)
	cmd.Env = append(cmd.Env, "CODE="+head+code, "PYTHONPATH="+path, "PYTHONDONTWRITEBYTECODE=1", "MULTILOCK_BINARY="+clitest.Binary())
	return cmd
}

// The code that the documentation offers to drivers works as documented.
func TestCloudshellDriverInPython(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	s, server, command := driver(t)
	script := func(code string) *exec.Cmd { return s.script(server, command.Token(), code) }
	got := s.begin(script(`
with sandbox_lock(context, name="PORTS", pause="20ms-100ms"):
    try:
        with sandbox_lock(context, name="PORTS", wait="1m", pause="20ms-100ms"):
            print("two are in here")
    except LockError as error:
        print("code %d" % error.code)
    print("working")
`)).end()
	require.Equal(t, ended{0, "code 125\nworking\n", ""}, got, "the script would wait for itself")
	require.NotContains(t, aliases(server), "PORTS", "the lock was released")

	got = s.begin(script(`
with sandbox_lock(context, pause="20ms-100ms"):
    raise ValueError("the block's own")
`)).end()
	require.Contains(t, got.stderr, "ValueError: the block's own")
	require.NotContains(t, aliases(server), "MUTEX")

	killed := s.holding(script(`
with sandbox_lock(context, pause="20ms-100ms"):
    print("ready", flush=True)
    sys.stdin.read()
`))
	require.Contains(t, aliases(server), "MUTEX")
	killed.Kill()
	s.eventually("the keeper releases the lock", func() bool { return !slices.Contains(aliases(server), "MUTEX") })
}

// The package contains the model that the program needs, and the command in the documentation builds
// its archive.
func TestCloudshellPackage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(driverDir+"/package")))
	text, err := os.ReadFile(driverDir + "/../cloudshell.md")
	require.NoError(t, err)
	const line = "python3 -m zipfile -c mutex-service.zip metadata.xml DataModel"
	require.Contains(t, string(text), line)
	if _, err := exec.LookPath("python3"); err == nil {
		pack := exec.Command("sh", "-c", line)
		pack.Dir = dir
		out, err := pack.CombinedOutput()
		require.NoError(t, err, string(out))
		archive, err := zip.OpenReader(filepath.Join(dir, "mutex-service.zip"))
		require.NoError(t, err)
		defer func() { require.NoError(t, archive.Close()) }()
		for _, name := range []string{"metadata.xml", "DataModel/datamodel.xml"} {
			_, err := archive.Open(name)
			require.NoError(t, err)
		}
	}
	var model struct {
		Attributes []named    `xml:"Attributes>AttributeInfo"`
		Families   []families `xml:"ResourceFamilies>ResourceFamily"`
	}
	text, err = os.ReadFile(filepath.Join(dir, "DataModel/datamodel.xml"))
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(text, &model))
	owner := []named{{cloudshell.DefaultAttribute}}
	require.Equal(t, owner, model.Attributes)
	require.Len(t, model.Families, 1)
	require.True(t, model.Families[0].IsService)
	require.Len(t, model.Families[0].Models, 1)
	require.Equal(t, cloudshell.DefaultModel, model.Families[0].Models[0].Name)
	require.Equal(t, owner, model.Families[0].Models[0].Attached)
	require.NoError(t, xml.Unmarshal(must(os.ReadFile(filepath.Join(dir, "metadata.xml"))), new(struct{ XMLName xml.Name })))
}

type named struct {
	Name string `xml:"Name,attr"`
}

type families struct {
	IsService bool `xml:"IsService,attr"`
	Models    []struct {
		Name     string  `xml:"Name,attr"`
		Attached []named `xml:"AttachedAttributes>AttachedAttribute"`
	} `xml:"Models>ResourceModel"`
}

// must unwraps a value whose error cannot occur at this point of a test.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// doctor reports what a killed holder costs, how scripts behave, and what run can do on this system. A
// model without the owner's attribute is unusable.
func TestDoctorOfCloudshell(t *testing.T) {
	t.Parallel()
	s, _ := cloudshellStation(t)
	got := s.run("doctor", "-v")
	require.Zero(t, got.code, got.stdout)
	for _, text := range []string{
		"killed holder: taken over at once on its own host", "scripts: scripts of the published convention never break a lock",
		"run: a job is killed with", "a CloudShell sandbox has the lock alone",
	} {
		require.Contains(t, clitest.OneLine(got.stdout), text)
	}
}

// Without the model or its attribute, locks do not work: doctor says what to do, and so does a failed
// run.
func TestCloudshellWithoutTheModel(t *testing.T) {
	t.Parallel()
	for doctor, model := range map[string]fakecloudshell.Model{
		`this user sees no service model "Mutex Service", as is usual without administrator rights`:      {Name: "Chiller"},
		`Locks do not work here: "Mutex Service" has no attribute "Mutex Owner", which names the holder`: fakecloudshell.PlainMutex(),
	} {
		server := newCloudshellWith(t, fakecloudshell.Options{Models: []fakecloudshell.Model{model}})
		s := newStation(t, "MULTILOCK_SOURCE="+cloudshellURL(server), "MULTILOCK_PASSWORD="+password)
		for want, command := range map[string][]string{
			`does the server have the service model "Mutex Service" with the attribute "Mutex Owner"?`: {"run", "--", "true"}, doctor: {"doctor"},
		} {
			got := s.run(command...)
			require.Equal(t, 125, got.code, got.stdout+got.stderr)
			said := clitest.OneLine(got.stdout + got.stderr)
			require.Contains(t, said, want)
			require.Contains(t, said, "If not, an administrator imports it")
		}
		require.Contains(t, s.must("status"), "nothing is held")
	}
}
