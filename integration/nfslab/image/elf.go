//go:build linux

package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// requiredPrograms are those that the scripts in the machine call and that a wrong guess in leftOut could remove.
func requiredPrograms() []string {
	return []string{
		"bash", "blockdev", "exportfs", "ip", "kadmin.local", "kdb5_util", "kinit", "krb5kdc", "losetup", "mawk",
		"mkfs.ext4", "modprobe", "mount", "mount.nfs", "nfsdcld", "nsenter", "pidof", "rpc.gssd", "rpc.mountd", "rpc.nfsd",
		"rpc.statd", "rpc.svcgssd", "rpcbind", "setpriv", "ss", "strace", "sysctl", "tar", "tc", "umount", "unshare",
	}
}

// dropUnlinkable removes programs and libraries that need a library which is not there, until none is left: half a
// program fails only when it is called.
func dropUnlinkable(tree string) error {
	for {
		libraries, err := sharedLibraries(tree)
		if err != nil {
			return err
		}
		dropped, err := dropOnce(tree, libraries)
		if err != nil || dropped == 0 {
			return err
		}
	}
}

func sharedLibraries(tree string) (map[string]bool, error) {
	found := map[string]bool{}
	for _, dir := range []string{"lib", "usr/lib"} {
		err := eachFile(filepath.Join(tree, dir), func(path string, _ fs.DirEntry) error {
			found[filepath.Base(path)] = true
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func dropOnce(tree string, libraries map[string]bool) (int, error) {
	dropped := 0
	err := eachFile(tree, func(path string, entry fs.DirEntry) error {
		if !entry.Type().IsRegular() || !missesLibrary(path, libraries) {
			return nil
		}
		dropped++
		return os.Remove(path)
	})
	return dropped, err
}

func missesLibrary(path string, libraries map[string]bool) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false // a script or data
	}
	defer file.Close()
	needed, err := file.ImportedLibraries()
	if err != nil {
		return false
	}
	for _, name := range needed {
		if !libraries[name] {
			return true
		}
	}
	return false
}

func checkComplete(tree string) error {
	for _, program := range requiredPrograms() {
		if !hasProgram(tree, program) {
			return fmt.Errorf("packages give no usable %s", program)
		}
	}
	return nil
}

func hasProgram(tree, program string) bool {
	for _, dir := range []string{"bin", "sbin", "usr/bin", "usr/sbin"} {
		if _, err := os.Lstat(filepath.Join(tree, dir, program)); err == nil {
			return true
		}
	}
	return false
}

// eachFile visits what is below dir and is not a directory; a dir that is absent holds nothing.
func eachFile(dir string, visit func(path string, entry fs.DirEntry) error) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		return visit(path, entry)
	})
}
