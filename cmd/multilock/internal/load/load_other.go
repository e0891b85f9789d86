//go:build !linux

package load

import (
	"errors"
	"runtime"

	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"
)

// Average returns the load average of the last minute.
func Average() (float64, error) {
	if runtime.GOOS == "windows" {
		return 0, errors.New("Windows keeps no load average") //nolint:staticcheck // a name
	}
	avg, err := load.Avg()
	if err != nil {
		return 0, err
	}
	return avg.Load1, nil
}

// Processors returns the number of processors of the host.
func Processors() int { return runtime.NumCPU() }

// ReadMemory reads the host's memory.
func ReadMemory() (Memory, error) {
	m, err := mem.VirtualMemory()
	if err != nil {
		return Memory{}, err
	}
	return Memory{Total: m.Total, Available: m.Available}, nil
}
