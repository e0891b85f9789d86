//go:build linux

// Package guest holds the lab's files for the machine: its init, its tools and its configuration.
package guest

import (
	"embed"
	"io/fs"
	"os"
	"strings"

	"github.com/multilock/go/integration/nfslab/cpio"
	"github.com/multilock/go/integration/nfslab/guest/hosts"
)

//go:embed root
var root embed.FS

// The names under which the launcher's own binary runs inside the machine.
const (
	AgentProgram = "lab-agent"
	InitProgram  = "lab-init"
	OnProgram    = "on"
	ExecProgram  = hosts.ExecProgram
	AbortProgram = hosts.AbortProgram
)

const binDir = "lab/bin"

// Write adds the files to archive, and the running binary under all its names.
func Write(archive *cpio.Writer) error {
	if err := writeFiles(archive); err != nil {
		return err
	}
	if err := writeSelf(archive, binDir+"/"+AgentProgram); err != nil {
		return err
	}
	for _, name := range []string{InitProgram, OnProgram, ExecProgram, AbortProgram} {
		if err := archive.Symlink(binDir+"/"+name, AgentProgram); err != nil {
			return err
		}
	}
	return nil
}

// writeSelf adds the running binary. It does not use the binary's path, where a newer version may be by
// now.
func writeSelf(archive *cpio.Writer, name string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	info, err := self.Stat()
	if err != nil {
		return err
	}
	return archive.File(name, 0o755, info.Size(), self)
}

func writeFiles(archive *cpio.Writer) error {
	return fs.WalkDir(root, "root", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := root.ReadFile(path)
		if err != nil {
			return err
		}
		return archive.Bytes(strings.TrimPrefix(path, "root/"), permissions(content), content)
	})
}

// permissions makes scripts executable, because embedding does not preserve modes.
func permissions(content []byte) fs.FileMode {
	if strings.HasPrefix(string(content), "#!") {
		return 0o755
	}
	return 0o644
}
