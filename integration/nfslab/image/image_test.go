//go:build linux

package image

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeyFollowsThePackages(t *testing.T) {
	one := packageSet{kernel: []string{"linux=1"}, root: []string{"bash=5"}}
	two := packageSet{kernel: []string{"linux=1"}, root: []string{"bash=6"}}
	keyOne, err := contentKey(one)
	require.NoError(t, err)
	again, err := contentKey(one)
	require.NoError(t, err)
	keyTwo, err := contentKey(two)
	require.NoError(t, err)
	require.Equal(t, keyOne, again)
	require.NotEqual(t, keyOne, keyTwo)
}

func TestChooseKeepsWhatTheMachineNeeds(t *testing.T) {
	set, err := choose([]string{"bash=5", "perl-base=5", "libpython3-stdlib=3", "libc6=2"},
		[]string{"kmod=30", "linux-image-6.1.0-1-cloud-amd64=6.1", "linux-image-cloud-amd64=6.1", "linux-modules-6.1.0-1-cloud-amd64=6.1"})
	require.NoError(t, err)
	require.Equal(t, packageSet{
		kernel: []string{"linux-image-6.1.0-1-cloud-amd64=6.1", "linux-modules-6.1.0-1-cloud-amd64=6.1"}, root: []string{"bash=5", "libc6=2"},
	}, set)
	_, err = choose(nil, []string{"linux-image-cloud-amd64=6.1"})
	require.Error(t, err)
}

func TestFilesGoWhereDebianHasThem(t *testing.T) {
	for from, to := range map[string]string{
		"bin/bash": "usr/bin/bash", "lib64/ld.so": "usr/lib64/ld.so", "usr/sbin/rpc.nfsd": "usr/sbin/rpc.nfsd",
		"usr/share": "", "usr/share/doc": "", "usr/sharex": "usr/sharex", "etc/services": "etc/services", "etc/passwd": "", "var": "",
	} {
		require.Equal(t, to, placeInRoot(from), from)
	}
}

func TestModulesComeWithTheirDependencies(t *testing.T) {
	dir := t.TempDir()
	index := filepath.Join(dir, "modules.dep")
	require.NoError(t, os.WriteFile(index, []byte("kernel/a/act-one.ko: kernel/b.ko kernel/c.ko.xz\nkernel/b.ko:\nkernel/c.ko.xz:\n"), 0o600))
	modules, err := loadableModules(index)
	require.NoError(t, err)
	require.Equal(t, []string{"kernel/a/act-one.ko", "kernel/b.ko", "kernel/c.ko.xz"}, modules["act_one"])
	require.Equal(t, []string{"kernel/b.ko"}, modules["b"])
	require.Equal(t, []string{"kernel/c.ko.xz"}, modules["c"])
}
