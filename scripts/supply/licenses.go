// Program licenses tells under which licences the modules are that it is given: on each line of its standard
// input are a module's path, its version, its directory, and the systems for which it is linked. It fails if
// a licence is unknown, or none that was agreed to.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// agreed are the licences under which whoever gets a binary has to be told of them; of what is under
// MPL-2.0, which is linked as it was published, also where its source is.
var agreed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

// enough is how much of a file has to be a licence, in percent, for the file to be one.
const enough = 75

// license is a file; parts of it may be under licences of their own.
type license struct {
	file, text string
	ids        []string
}

func main() {
	texts := flag.Bool("texts", false, "print the texts of the licences, to go with a binary, and no table")
	flag.Parse()
	if err := run(*texts); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(texts bool) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), "\t", 4)
		if len(fields) != 4 {
			return fmt.Errorf("%q is not a path, a version, a directory and systems", lines.Text())
		}
		found, err := licensesOf(fields[2])
		if err != nil {
			return fmt.Errorf("%s %s: %w", fields[0], fields[1], err)
		}
		if texts {
			printTexts(fields[0], fields[1], found)
			continue
		}
		fmt.Printf("| %s | %s | %s | %s |\n", fields[0], fields[1], names(found), fields[3])
	}
	return lines.Err()
}

// licensesOf reads the files of a module that are called licences. All of them count.
func licensesOf(dir string) ([]license, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []license
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		if entry.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		one, err := read(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no licence in %s", dir)
	}
	return found, nil
}

func read(path string) (license, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return license{}, err
	}
	seen := licensecheck.Scan(text)
	if len(seen.Match) == 0 || seen.Percent < enough {
		return license{}, fmt.Errorf("%s is not a licence that is known", path)
	}
	found := license{file: filepath.Base(path), text: string(text)}
	for _, match := range seen.Match {
		if !slices.Contains(agreed, match.ID) {
			return license{}, fmt.Errorf("%s is under %s, which is not one of %s", path, match.ID, strings.Join(agreed, ", "))
		}
		found.ids = append(found.ids, match.ID)
	}
	return found, nil
}

func names(found []license) string {
	var ids []string
	for _, one := range found {
		ids = append(ids, one.ids...)
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), ", ")
}

func printTexts(path, version string, found []license) {
	for _, one := range found {
		fmt.Printf("==== %s %s: %s\n\n%s\n", path, version, one.file, one.text)
	}
}
