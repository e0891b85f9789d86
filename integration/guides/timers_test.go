package guides_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const unitDir = "/etc/systemd/system/"

func timers() []scene {
	return []scene{
		{has: "ExecStart=", play: func(t *testing.T, b block) {
			require.NoError(t, os.WriteFile(unitDir+"nightly.service", []byte(b.text), 0o644))
			line := regexp.MustCompile(`(?m)^ExecStart=(.*)`).FindStringSubmatch(b.text)
			p := newPlace(t)
			p.must("MULTILOCK_DIR=/shared " + line[1])
			require.Equal(t, []string{"nightly.sh"}, p.calls())
		}},
		{has: "OnCalendar=", play: func(t *testing.T, b block) {
			require.NoError(t, os.WriteFile(unitDir+"nightly.timer", []byte(b.text), 0o644))
		}},
		{has: "systemd-analyze", play: func(t *testing.T, b block) {
			p := newPlace(t)
			verify, enable, _ := strings.Cut(b.text, "\n")
			require.Equal(t, "systemctl enable --now nightly.timer\n", enable, "it needs a systemd that runs, which no world has")
			verifies(p, verify)
			p.must("systemctl --root / enable nightly.timer && test -e " + unitDir + "timers.target.wants/nightly.timer")
		}},
		{has: "kind: CronJob", play: func(t *testing.T, b block) {
			var cron batchv1.CronJob
			require.NoError(t, yaml.UnmarshalStrict([]byte(b.text), &cron))
			require.Equal(t, "batch/v1 CronJob", cron.APIVersion+" "+cron.Kind)
			pod := cron.Spec.JobTemplate.Spec.Template.Spec
			inPod(t, pod)
		}},
		{has: "kind: Job\n", play: func(t *testing.T, b block) {
			var job batchv1.Job
			require.NoError(t, yaml.UnmarshalStrict([]byte(b.text), &job))
			require.Equal(t, "batch/v1 Job", job.APIVersion+" "+job.Kind)
			require.Nil(t, job.Spec.Completions)
			inPod(t, job.Spec.Template.Spec)
		}},
	}
}

// inPod runs the command of a pod as the manifest says, and checks what the schema leaves open.
func inPod(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	require.Contains(t, []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}, pod.RestartPolicy, "a Job takes no other")
	p := newPlace(t)
	for _, container := range pod.Containers {
		for _, at := range container.VolumeMounts {
			require.Equal(t, pod.Volumes[0].Name, at.Name)
		}
		dir := container.WorkingDir
		if dir == "" {
			dir = "/"
		}
		p.must("mkdir -p " + dir + "; printf 'work 1\n' >/shared/jobs.txt; test " + dir + " = / || cp /shared/jobs.txt " + dir)
		var environ string
		for _, e := range container.Env {
			environ += e.Name + "=" + e.Value + " "
		}
		p.must("cd " + dir + " && " + environ + strings.Join(container.Command, " "))
		require.NotEmpty(t, p.calls())
	}
}

// verifies requires that systemd has nothing to say about a unit.
func verifies(p *place, command string) {
	p.Helper()
	got := p.sh(command)
	require.Zero(p, got.code, got.errout)
	for line := range strings.Lines(got.errout) {
		require.NotContains(p, line, "nightly", got.errout) // other units of the machine are not ours
	}
}

// The units in the packages are right, too.
func TestPackagedUnits(t *testing.T) {
	p := newPlace(t)
	p.program("/usr/bin/multilock", "#!/bin/sh\n")
	p.program("/usr/local/bin/nightly.sh", standIn)
	for _, name := range []string{"multilock-nightly.service", "multilock-nightly.timer"} {
		text, err := os.ReadFile(filepath.Join(checkout(t), "scripts/package/files", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(unitDir+name, text, 0o644))
	}
	verifies(p, "systemd-analyze verify --man=no "+unitDir+"multilock-nightly.timer")
	verifies(p, "systemd-analyze verify --man=no "+unitDir+"multilock-nightly.service")
	p.must("rm /usr/bin/multilock")
}
