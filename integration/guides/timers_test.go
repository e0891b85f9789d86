package guides_test

import (
	"os"
	"path/filepath"
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
			require.Contains(t, packagedUnits(t)["multilock-nightly.service"], b.text)
			p := newPlace(t)
			p.must("cp $(command -v multilock) /usr/bin/multilock; MULTILOCK_DIR=/shared " + strings.TrimPrefix(strings.TrimSpace(b.text), "ExecStart=") + "; rm /usr/bin/multilock")
			require.Equal(t, []string{"nightly.sh"}, p.calls())
		}},
		{has: "systemd-analyze", play: func(t *testing.T, b block) {
			p := newPlace(t)
			p.program("/usr/bin/multilock", "#!/bin/sh\n")
			for name, text := range packagedUnits(t) {
				require.NoError(t, os.WriteFile(unitDir+name, []byte(text), 0o644))
			}
			verify, enable, _ := strings.Cut(b.text, "\n")
			require.Equal(t, "systemctl enable --now multilock-nightly.timer\n", enable, "needs a running systemd, which a world lacks")
			verifies(p, strings.Replace(verify, "verify", "verify --man=no", 1))
			verifies(p, "systemd-analyze verify --man=no "+unitDir+"multilock-nightly.service")
			p.must("systemctl --root / enable multilock-nightly.timer && test -e " + unitDir + "timers.target.wants/multilock-nightly.timer; rm /usr/bin/multilock")
		}},
	}
}

// TestKubernetes checks the manifests beside the guide.
func TestKubernetes(t *testing.T) {
	for _, name := range []string{"nightly.sh", "work"} {
		require.NoError(t, os.WriteFile("/usr/local/bin/"+name, []byte(standIn), 0o755))
	}
	manifest := func(name string, into any) {
		text, err := os.ReadFile(filepath.Join(checkout(t), "docs/kubernetes", name))
		require.NoError(t, err)
		require.NoError(t, yaml.UnmarshalStrict(text, into))
	}
	var cron batchv1.CronJob
	manifest("cronjob.yaml", &cron)
	require.Equal(t, "batch/v1 CronJob", cron.APIVersion+" "+cron.Kind)
	inPod(t, cron.Spec.JobTemplate.Spec.Template.Spec)
	var job batchv1.Job
	manifest("job.yaml", &job)
	require.Equal(t, "batch/v1 Job", job.APIVersion+" "+job.Kind)
	require.Nil(t, job.Spec.Completions)
	inPod(t, job.Spec.Template.Spec)
}

// inPod runs a pod's command as the manifest says, and checks what the schema does not.
func inPod(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	require.Contains(t, []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}, pod.RestartPolicy, "the only policies for a Job")
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

// verifies requires that systemd does not complain about a unit.
func verifies(p *place, command string) {
	p.Helper()
	got := p.sh(command)
	require.Zero(p, got.code, got.errout)
	for line := range strings.Lines(got.errout) {
		require.NotContains(p, line, "nightly", got.errout) // other units of the machine do not matter
	}
}

// packagedUnits returns the example units in the packages, by name.
func packagedUnits(t *testing.T) map[string]string {
	t.Helper()
	units := map[string]string{}
	for _, name := range []string{"multilock-nightly.service", "multilock-nightly.timer"} {
		text, err := os.ReadFile(filepath.Join(checkout(t), "scripts/package/files", name))
		require.NoError(t, err)
		units[name] = string(text)
	}
	return units
}
