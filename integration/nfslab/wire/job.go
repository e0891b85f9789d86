//go:build linux

package wire

// JobPath is the job's path in the machine.
const JobPath = "/lab/job.json"

// ControlPort is the name of the virtio serial port that transports the frames.
const ControlPort = "lab.control"

// Job is what the machine runs after it has booted.
type Job struct {
	Command  []string `json:"command"`
	Env      []string `json:"env"`      // NAME=VALUE, added to the machine's own
	Dir      string   `json:"dir"`      // working directory
	Stdin    bool     `json:"stdin"`    // Stdin frames will follow; otherwise the command's input is empty
	Terminal bool     `json:"terminal"` // the command uses the virtio console instead of frames
	Output   bool     `json:"output"`   // send back the files in /out
}
