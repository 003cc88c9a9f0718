package test

import (
	"debug/elf"
	"os"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/node/gpu/nvml/nvmltest"
)

// TestProgramRunsOnOldMachines: the program that people copy to machines with GPUs asks glibc for no version of a symbol.
func TestProgramRunsOnOldMachines(t *testing.T) {
	f, err := elf.Open(bin(t, "pintle"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	symbols, err := f.ImportedSymbols()
	if err != nil || len(symbols) == 0 {
		t.Fatalf("%d symbols, error %v", len(symbols), err)
	}
	for _, s := range symbols {
		if s.Version != "" {
			t.Errorf("it needs %s@%s", s.Name, s.Version)
		}
	}
}

// gpuAgent is an agent on a machine with GPUs.
func gpuAgent(t *testing.T, p *Pintle, m *nvmltest.Machine, args ...string) *daemon {
	return &daemon{
		t:    t,
		args: append([]string{"agent", "--endpoint", p.Endpoint, "--data", t.TempDir(), "--name", "gpu-box", "--metrics="}, args...),
		env:  []string{"LD_LIBRARY_PATH=" + m.Dir},
	}
}

// TestRealGPUs runs an agent on a machine whose driver finds eight GPUs: one does not answer, and one is cut into two slices.
func TestRealGPUs(t *testing.T) {
	t.Parallel()
	m := nvmltest.New(t, 8).Set("3.handle", "!999", "0.mig", "1", "0.slices", "7", "0.utilization", "!3", "1.utilization", "77")
	slices := []string{"MIG-a-" + nvmltest.UUID(0), "MIG-b-" + nvmltest.UUID(0)}
	m.Set("0/0.uuid", slices[0], "0/0.memory", "5368709120", "0/1.uuid", slices[1], "0/1.memory", "5368709120")
	p := Up(t, "c5.xlarge=1")
	agent := gpuAgent(t, p, m, "--runtime", "process")
	agent.start()
	defer func() { agent.kill() }()
	line := func(id string) string {
		out, err := p.pintle("gpus")
		if err != nil {
			t.Fatal(err, out)
		}
		for l := range strings.Lines(out) {
			if strings.Contains(l, id) {
				return l
			}
		}
		return ""
	}
	Eventually(t, "a GPU's load", func() bool { return strings.Contains(line(nvmltest.UUID(1)), "77 %") })
	if l := line(slices[1]); !strings.Contains(l, " - ") || strings.Contains(l, "%") {
		t.Errorf("how busy a slice is isn't known, and pintle gpus says %s", l)
	}
	if l := line("8 GPUs, "); !strings.Contains(l, "8 GPUs, 8 free, 0 broken") { // six whole ones and two slices
		t.Errorf("pintle gpus says %s", l)
	}
	file := t.TempDir() + "/gpus"
	p.AWS("ecs", "register-task-definition", "--family", "sees", "--container-definitions",
		`[{"name":"main","image":"i","memory":64,"command":["/bin/sh","-c","echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES > `+file+`"],`+
			`"resourceRequirements":[{"type":"GPU","value":"8"}]}]`)
	task := p.AWS("ecs", "run-task", "--task-definition", "sees", "--query", "tasks[0].taskArn", "--output", "text")
	p.Await(task, "STOPPED")
	seen, err := os.ReadFile(file)
	if ids := strings.Fields(string(seen)); err != nil || len(ids) != 2 || ids[0] != ids[1] || strings.Contains(ids[0], nvmltest.UUID(3)) ||
		!strings.Contains(ids[0], slices[0]) || strings.Count(ids[0], ",") != 7 {
		t.Errorf("the task sees %q, error %v", seen, err)
	}

	// A machine that is set up anew leaves its old instance behind, which lists the same GPUs.
	agent.kill()
	Eventually(t, "the machine's absence", func() bool {
		return strings.Contains(line("8 GPUs, "), "8 GPUs, 0 free, 0 broken, 8 on nodes that are away")
	})
	agent = gpuAgent(t, p, m, "--runtime", "process")
	agent.start()
	Eventually(t, "the new instance", func() bool { return strings.Contains(line("16 GPUs, "), "16 GPUs, 8 free, 0 broken, 8 on") })
	if out, err := p.pintle("gpus", "clear", nvmltest.UUID(1)); err != nil {
		t.Errorf("a stale instance is in the way: %s", out)
	}
}

// TestGPUsThatContainersCannotHave: a machine without what runtimes need for GPUs says so when its agent starts, and offers none.
func TestGPUsThatContainersCannotHave(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.xlarge=1")
	refused := func(why string, agent *daemon) {
		t.Helper()
		cmd := p.Command(bin(t, "pintle"), append(agent.args, "--gpus", "required")...)
		cmd.Env = append(cmd.Env, agent.env...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), why) || !strings.Contains(string(out), "--gpus required") {
			t.Errorf("%v, %s; want %s", err, out, why)
		}
	}
	refused("nvidia-ctk cdi generate", gpuAgent(t, p, nvmltest.New(t, 1), "--runtime", "oci"))
	refused("the driver is not loaded", gpuAgent(t, p, nvmltest.New(t, 1).Set("init", "!9"), "--runtime", "process"))
	refused("there is no GPU that answers", gpuAgent(t, p, nvmltest.New(t, 2).Set("handle", "!999"), "--runtime", "process"))
	refused("an instance type is simulated", gpuAgent(t, p, nvmltest.New(t, 1), "--runtime", "process", "--instance-type", "g4dn.xlarge"))
}
