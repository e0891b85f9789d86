package command

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

type acquireOptions struct {
	common
	holding
	wait   console.WaitLimit
	pid    console.Number
	detach bool
}

// acquireReport is the output of "acquire --json".
type acquireReport struct {
	Name   string `json:"name"`
	Group  string `json:"group"`
	Token  string `json:"token"`
	Fence  uint64 `json:"fence,omitempty"`
	Keeper int    `json:"keeper_pid,omitempty"` // the process that renews the lock; none for --detach
	For    int    `json:"for_pid,omitempty"`    // the process that owns the lock: its end releases the lock
}

// Acquire acquires a lock for a shell script.
func Acquire(e *Env) *cli.Command {
	o := &acquireOptions{}
	return &cli.Command{
		Name:      "acquire",
		Usage:     "acquire the lock for a shell script, and print its token",
		ArgsUsage: "[options] NAME",
		Description: `Acquires the lock for a shell script and prints a token; if the script dies, the
lock is released. Exits with 121 if another process holds the lock.

   token=$(multilock -d /shared acquire -n deploy --wait 10m) || exit
   ...
   multilock -d /shared release -n deploy --token "$token"`,
		Flags: e.Flags("acquire", options.Values{
			"wait": &o.wait, "pid": &o.pid, "detach": &o.detach, "shared": &o.Shared, "fair": &o.Fair,
			"ttl": &o.TTL, "max-age": &o.MaxAge, "poll": &o.Poll, "probe": &o.Probe,
		}),
		Action: reading(e, &o.common, o.read, func(c *cli.Context) error { return o.locate(runAcquire(c.Context, e, o)) }),
	}
}

func (o *acquireOptions) read(c *cli.Context) error {
	o.useTTL(&o.Place)
	if err := o.readName(c, "a command is run with: multilock run -n NAME -- COMMAND"); err != nil {
		return err
	}
	return o.checkName("acquire", o.Name)
}

func runAcquire(ctx context.Context, e *Env, o *acquireOptions) error {
	sigs := console.CatchSignals()
	console.OutliveReaders() // a closed pipe causes a write error, after which the lock is released
	defer sigs.Release()
	ctx = sigs.Until(ctx)
	granted, err := o.acquire(ctx, e)
	if err != nil {
		return err
	}
	err = o.deliver(e, granted.report)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return errors.Join(err, granted.withdraw())
	}
	return granted.keep()
}

// deliver writes the report to the standard output.
func (o *acquireOptions) deliver(e *Env, report acquireReport) error {
	if o.Verbose {
		e.Say("took lock %q", o.Name)
	}
	if closedOutput(e.Stdout) {
		return errors.New("print the token: the standard output is closed; send it to a file, or to /dev/null if the lock is to be released with the process --pid")
	}
	if o.JSON {
		return e.PrintJSON(report)
	}
	return e.Print("%s\n", report.Token)
}

// grant is a lock that was acquired, but not yet delivered. If its token cannot be written, the lock is
// released: no process could use it.
type grant struct {
	report   acquireReport
	keep     func() error
	withdraw func() error
}

// callingScript returns the process that owns the lock if --pid is not given.
func callingScript(parent int) (int, error) {
	pid := callingShell(parent)
	if name, yes := isWrapper(pid); yes {
		return 0, console.Usagef("acquire", "the calling process, %s (pid %d), ends with this command, and the lock would be released then; give the script's own process: --pid $$", name, pid)
	}
	return pid, nil
}

func (o *acquireOptions) acquire(ctx context.Context, e *Env) (grant, error) {
	if o.detach {
		return acquireDetached(ctx, e, o)
	}
	if !o.pid.Given {
		var err error
		if o.pid.Value, err = callingScript(os.Getppid()); err != nil {
			return grant{}, err
		}
	}
	owner, err := process.Find(o.pid.Value)
	if err != nil {
		return grant{}, console.Usagef("acquire", "--pid %d: %v", o.pid.Value, err)
	}
	return acquireKept(ctx, e, o, owner)
}

// acquireDetached acquires a lock without heartbeats.
func acquireDetached(ctx context.Context, e *Env, o *acquireOptions) (grant, error) {
	src, err := e.Kinds.Open(ctx, e.Env, o.Place)
	if err != nil {
		return grant{}, err
	}
	if err := errors.Join(src.Require("acquire", source.TraitPromptRelease), src.Require("acquire: --detach", source.TraitBreakByEvidence), requireIf[source.Queueing](o.Fair, src, "acquire: --fair", source.TraitQueue)); err != nil {
		return grant{}, src.Close(err)
	}
	o.warnOneHost(e, src)
	a, err := o.acquisition(e, src, "acquire", o.Output, e.Say)
	if err != nil {
		return grant{}, src.Close(err)
	}
	a.opt.Command, a.limit = "acquire --detach", o.wait
	a.terms = func(opt multilock.Options) multilock.Terms { return multilock.Detached{Options: opt} }
	start := time.Now()
	lock, fence, err := a.acquireFenced(ctx)
	if err != nil {
		return grant{}, src.Close(err)
	}
	waited := time.Since(start)
	return grant{
		report: acquireReport{Name: o.Name, Group: o.Group, Token: lock.Record().Token, Fence: fence},
		keep: func() error {
			_ = src.Note(context.WithoutCancel(ctx), acquiredEvent(lock, fence, waited))
			return src.Close(lock.Detach())
		},
		withdraw: func() error { return src.Close(lock.Release(context.WithoutCancel(ctx))) },
	}, nil
}

func acquiredEvent(lock *multilock.Lock, fence uint64, waited time.Duration) source.Event {
	r := lock.Record()
	return source.Event{
		Time: time.Now(), What: source.EventAcquired, Name: r.Name, Token: r.Token, By: r.Holder.Identity,
		User: r.Holder.User, Command: r.Holder.Command, Fence: fence, Waited: waited,
	}
}

// keepOrder is the keeper's input: the lock to hold, and the options.
type keepOrder struct {
	Place   place.Place // the URL includes the password
	Holding holding
	Wait    console.WaitLimit
	Silent  bool // reports only errors
	Owner   process.Identity
}

// keepAnswer is the keeper's reply on its standard output. All replies but the last have only the message
// Say.
type keepAnswer struct {
	Say   string `json:",omitempty"`
	Token string
	Fence uint64
	Code  int
	Error string
}

// acquireKept starts a keeper, which acquires the lock in the owner's name: the lock's record names the
// process that is protected by the lock, not the process that renews it.
func acquireKept(ctx context.Context, e *Env, o *acquireOptions, owner process.Identity) (grant, error) {
	where, err := o.WithPassword(e.Env)
	if err != nil {
		return grant{}, err
	}
	keeper, err := startKeeper(e, keepOrder{where, o.holding, o.wait, o.Quiet || o.JSON, owner})
	if err != nil {
		return grant{}, err
	}
	if o.wait.Waits() {
		src, err := e.Kinds.Open(ctx, e.Env, o.Place)
		if err == nil {
			stop := show.StartNotice(ctx, e.Env, o.Output, (&show.Obstacle{Src: src, Name: o.Name, Self: owner}).Tell)
			defer func() { stop(); _ = src.Close(nil) }()
		}
	}
	answer, err := keeper.answer(ctx, e.Say)
	if err != nil {
		return grant{}, errors.Join(err, keeper.dismiss())
	}
	report := acquireReport{Name: o.Name, Group: o.Group, Token: answer.Token, Fence: answer.Fence, Keeper: keeper.pid, For: owner.PID}
	return grant{report: report, keep: keeper.confirm, withdraw: keeper.dismiss}, nil
}

// keeperProcess is the keeper as its parent sees it.
type keeperProcess struct {
	pid  int
	life io.WriteCloser // if it is closed without a confirmation, the keeper gives up
	out  io.ReadCloser  // ends when the keeper has been confirmed, or has given up
}

// confirm makes the keeper hold the lock until the owner ends.
func (k *keeperProcess) confirm() error {
	if _, err := io.WriteString(k.life, delivered); err != nil {
		return fmt.Errorf("the keeper has ended: %w", err)
	}
	return k.end()
}

// dismiss makes the keeper release the lock, and waits for that.
func (k *keeperProcess) dismiss() error {
	_ = k.life.Close()
	return k.end()
}

func (k *keeperProcess) end() error {
	_, err := io.Copy(io.Discard, k.out)
	return err
}

func startKeeper(e *Env, order keepOrder) (*keeperProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program itself to start the keeper: %w", err)
	}
	cmd := exec.Command(self, KeepCommand)
	cmd.Env = place.JobEnviron(e.Environ()) // the order carries the secrets
	cmd.SysProcAttr = ownSession()
	// URLs and probes may have relative paths.
	if order.Place.URL == (place.Address{}) && order.Holding.Probe == "" {
		cmd.Dir = "/" // so that the script's directory can be unmounted
		if order.Place.Base, err = filepath.Abs(order.Place.Base); err != nil {
			return nil, fmt.Errorf("start the keeper: %w", err)
		}
	}
	in, err := cmd.StdinPipe()
	out, failed := cmd.StdoutPipe()
	if err = cmp.Or(err, failed); err == nil {
		keepDescriptors()
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the keeper: %w", err)
	}
	if err := json.NewEncoder(in).Encode(console.MapTexts(order, source.EncodeName)); err != nil {
		return nil, fmt.Errorf("send the keeper its orders: %w", err)
	}
	return &keeperProcess{pid: cmd.Process.Pid, life: in, out: out}, nil
}

// answer reports the keeper's messages, and returns its last reply. If ctx ends, the keeper gives up.
func (k *keeperProcess) answer(ctx context.Context, say func(string, ...any)) (keepAnswer, error) {
	stop := context.AfterFunc(ctx, func() { _ = k.life.Close() })
	defer stop()
	lines := json.NewDecoder(k.out)
	var a keepAnswer
	for {
		err := lines.Decode(&a)
		if cause := context.Cause(ctx); cause != nil {
			return keepAnswer{}, cause
		}
		if err != nil {
			return keepAnswer{}, fmt.Errorf("the keeper ended without an answer: %w", err)
		}
		if a.Say == "" {
			break
		}
		say("%s", a.Say)
		a = keepAnswer{}
	}
	if a.Code != console.ExitOK {
		return keepAnswer{}, &console.CodedError{Code: a.Code, Text: a.Error} // formatted by the keeper
	}
	return a, nil
}

// readOrder reads the keeper's order.
func readOrder(in *bufio.Reader) (keepOrder, error) {
	var order keepOrder
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &order)
	}
	if err != nil {
		return order, errors.New("this command is for multilock's own use; see: multilock acquire")
	}
	return console.MapTexts(order, source.DecodeName), nil
}

var errParentGone = fmt.Errorf("the process that asked for the lock is gone: %w", console.Signalled(syscall.SIGTERM))
