package guides_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// python runs a block with these modules and the package of this checkout in its path.
func python(p *place, b block, modules string) ended {
	p.Helper()
	p.write(p.work+"/program.py", b.text)
	return p.sh("PYTHONPATH=" + modules + ":" + checkout(p.T) + "/scripts/python python3 program.py")
}

func fromMultiLock() []scene {
	const class = "testdata" // contains a class of 2012, adapted to Python 3
	return []scene{
		{has: "from multilock import MultiLock", play: func(t *testing.T, b block) {
			p := newPlace(t)
			require.Equal(t, ended{}, python(p, b, checkout(t)+"/integration/guides/"+class))
			// The transcript below runs the program by this name and tries its lock meanwhile, which
			// may take longer on a busy machine.
			p.write("/usr/local/lib/old-nightly.py", strings.Replace(b.text, "time.sleep(2)", "time.sleep(10)", 1))
			p.program("/usr/local/bin/old-nightly", "#!/bin/sh\nPYTHONPATH="+checkout(t)+"/integration/guides/"+class+" exec python3 /usr/local/lib/old-nightly.py\n")
		}},
		{has: "multilock.Held", play: func(t *testing.T, b block) {
			p := newPlace(t)
			require.Equal(t, ended{}, python(p, b, ""))
			p.must("multilock -d /shared acquire -n nightly --pid $PPID")
			require.Equal(t, ended{1, "", "not acquired\n"}, python(p, b, ""))
		}},
		{has: "$ old-nightly", play: transcript},
	}
}

func fromFilelock() []scene {
	return []scene{
		{has: "lock.fence", play: func(t *testing.T, b block) {
			got := python(newPlace(t), b, "")
			require.Equal(t, "fence 1\n", got.out, got.errout)
		}},
		{has: "multilock.filelock.replace()", play: func(t *testing.T, b block) {
			p := newPlace(t)
			library := t.TempDir()
			p.write(library+"/huggingface_hub.py", "from filelock import FileLock\ndef snapshot_download():\n    with FileLock('/shared/model.lock'):\n        import os\n        print(os.listdir('/shared/.locks'))\n")
			b.text += "snapshot_download()\n"
			got := python(p, b, library)
			require.Equal(t, "['model.lock']\n", got.out, got.errout)
		}},
		{has: "pip-cache", play: func(t *testing.T, b block) {
			p := newPlace(t, "pip")
			require.NoError(t, os.Mkdir("/shared/locks", 0o755))
			for _, s := range p.follow("PATH=$PWD:$PATH\n" + b.text) {
				require.Zero(t, s.code, s.said)
			}
			require.Equal(t, []string{"pip install -r requirements.txt"}, p.calls())
		}},
	}
}

func upgrading() []scene {
	return []scene{
		{has: "multilock.new", play: commands{
			hosts: true, before: "cp $(which multilock) multilock; multilock -d /shared acquire -n kept --pid $PPID",
			says:  map[string]string{"multilock.new": `(?s)multilock .*multilock .*multilock `},
			after: "multilock -d /shared status kept; test $? = 121",
		}.play},
	}
}
