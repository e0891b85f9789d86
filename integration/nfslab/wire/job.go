//go:build linux

package wire

// JobPath is where the launcher puts the job into the machine.
const JobPath = "/lab/job.json"

// ControlPort is the name of the virtio serial port that frames travel on.
const ControlPort = "lab.control"

// Job is what the machine is to do once it is up.
type Job struct {
	Command  []string `json:"command"`
	Env      []string `json:"env"`      // NAME=VALUE, added to the machine's own
	Dir      string   `json:"dir"`      // working directory
	Stdin    bool     `json:"stdin"`    // Stdin frames will come; without it the command reads end of file
	Terminal bool     `json:"terminal"` // the command talks to the virtio console instead of frames
	Output   bool     `json:"output"`   // send back what is in /out
}
