//go:build linux

// Package guest holds the files of the lab that go into the machine: its init, its tools and its configuration.
package guest

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/multilock/go/integration/nfslab/cpio"
)

//go:embed root
var root embed.FS

// Programs are the names under which the launcher's own binary serves inside the machine.
const (
	AgentProgram = "lab-agent"
	InitProgram  = "lab-init"
	OnProgram    = "on"
)

const binDir = "lab/bin"

// Write adds the files to archive, and the launcher's binary self under the names of Programs.
func Write(archive *cpio.Writer, self string) error {
	if err := writeFiles(archive); err != nil {
		return err
	}
	if err := archive.Copy(binDir+"/"+AgentProgram, self); err != nil {
		return err
	}
	for _, name := range []string{InitProgram, OnProgram} {
		if err := archive.Symlink(binDir+"/"+name, AgentProgram); err != nil {
			return err
		}
	}
	return nil
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

// permissions makes scripts executable: embedding does not keep modes.
func permissions(content []byte) fs.FileMode {
	if strings.HasPrefix(string(content), "#!") {
		return 0o755
	}
	return 0o644
}
