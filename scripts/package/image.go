// Command package writes an OCI image with one static binary in it, for several architectures, as a layout on
// disk, without a daemon.
//
//	go run . VERSION DIRECTORY ARCHITECTURE=BINARY...
package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: package VERSION DIRECTORY ARCHITECTURE=BINARY...")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write makes the layout. Its one name, the version, is that of a list of the images, of
// which whoever runs one takes that of his machine.
func write(version, directory string, binaries []string) error {
	index := v1.ImageIndex(empty.Index)
	for _, each := range binaries {
		arch, binary, _ := strings.Cut(each, "=")
		image, err := imageOf(binary, arch, version)
		if err != nil {
			return fmt.Errorf("image of %s: %w", each, err)
		}
		platform := &v1.Platform{OS: "linux", Architecture: arch}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	path, err := layout.Write(directory, empty.Index)
	if err != nil {
		return fmt.Errorf("layout %s: %w", directory, err)
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version})
	if err := path.AppendIndex(index, named); err != nil {
		return fmt.Errorf("layout %s: %w", directory, err)
	}
	return nil
}

// imageOf is nothing but the binary: it needs no libraries, no shell, and no user's name.
func imageOf(binary, arch, version string) (v1.Image, error) {
	files, err := layer(binary)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }
	content, err := tarball.LayerFromOpener(opener)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, content)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", arch, v1.Time{Time: time.Unix(0, 0).UTC()}
	file.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/multilock"},
		Env:        []string{"PATH=/usr/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "multilock",
			"org.opencontainers.image.version":  strings.TrimPrefix(version, "v"),
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, file)
}

// layer is a tar with the binary under both of its names, and a /tmp.
func layer(binary string) ([]byte, error) {
	content, err := os.ReadFile(binary) //nolint:gosec // the user's own
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	headers := []tar.Header{
		{Name: "usr/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "usr/bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "usr/bin/multilock", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))},
		{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
	}
	for _, header := range headers {
		header.ModTime, header.Format = time.Unix(0, 0), tar.FormatPAX
		if err := w.WriteHeader(&header); err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := w.Write(content); err != nil {
				return nil, err
			}
		}
	}
	return buffer.Bytes(), w.Close()
}
