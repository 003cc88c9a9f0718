package function

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Where code and layers are in containers.
const (
	taskRoot = "/var/task"
	optRoot  = "/opt"
)

// places is where an environment's parts are on this machine; "" is a part that it doesn't have.
type places struct{ code, layers, storage string }

// environment returns what a task runs, and where its parts are. It returns false if the task is no environment.
func (f *Functions) environment(task *acs.Task) (name string, at places, is bool) {
	for _, v := range task.Volumes {
		if !IsFunction(v) {
			continue
		}
		options := v.DockerVolumeConfiguration.DriverOpts
		switch {
		case options[acs.FunctionRuntime] != "":
			name, at.code = options[acs.FunctionRuntime], f.Path(task.Arn, v)
		case options[acs.FunctionLayers] != "":
			at.layers = f.Path(task.Arn, v)
		case isStorage(v):
			at.storage = f.Path(task.Arn, v)
		}
	}
	return name, at, name != ""
}

// Shape makes an environment's container what runs its function here.
func (f *Functions) Shape(spec *runtime.Spec, task *acs.Task) error {
	name, at, is := f.environment(task)
	if !is {
		return nil
	}
	api, err := f.address(task.Arn)
	if err != nil {
		return err
	}
	spec.Env = runtime.Environment(spec.Env, []string{"AWS_LAMBDA_RUNTIME_API=" + api})
	switch {
	case f.opts.Plain:
		return f.shapePlain(spec, name, at)
	case strings.HasPrefix(name, "provided"):
		return shapeProvided(spec, at)
	}
	return nil
}

// shapeProvided has a container run the function's own bootstrap, whatever its image runs by itself. On AWS, Lambda looks for it, too: AWS's
// images have an entry point that knows a runtime of the image's alone.
func shapeProvided(spec *runtime.Spec, at places) (err error) {
	inside := map[string]string{at.code: taskRoot, at.layers: optRoot}
	path, err := bootstrapIn(at)
	if err != nil {
		return err
	}
	spec.Entrypoint = []string{filepath.Join(inside[filepath.Dir(path)], "bootstrap")}
	spec.Command = nil
	spec.WorkingDir = taskRoot
	return nil
}

// bootstrapIn returns the program that runs a function which brings its runtime: that of its code, or of its layers.
func bootstrapIn(at places) (path string, err error) {
	for _, dir := range []string{at.code, at.layers} {
		path = filepath.Join(dir, "bootstrap")
		if _, err := os.Stat(path); dir != "" && err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("neither the function's zip file nor its layers have a bootstrap, which runs it")
}

// shapePlain has a plain process do what a container would.
func (f *Functions) shapePlain(spec *runtime.Spec, name string, at places) (err error) {
	var env []string
	if at.storage != "" {
		env = append(env, "TMPDIR="+at.storage)
	}
	spec.Mounts = nil
	if name == acs.FunctionImage {
		spec.Env = runtime.Environment(spec.Env, env)
		return nil
	}
	modules := os.Getenv("NODE_PATH") // such as the AWS SDK, which AWS's base images have
	env = append(env, "PYTHONUNBUFFERED=1", "LAMBDA_TASK_ROOT="+at.code, "LAMBDA_RUNTIME_DIR="+filepath.Join(f.opts.Dir, "runtime"))
	if opt := at.layers; opt != "" {
		env = append(env, "PINTLE_LAYERS="+opt, "PATH="+os.Getenv("PATH")+":"+opt+"/bin", "LD_LIBRARY_PATH="+opt+"/lib")
		modules = strings.TrimSuffix(opt+"/nodejs/node_modules:"+modules, ":")
	}
	if modules != "" {
		env = append(env, "NODE_PATH="+modules)
	}
	spec.Env = runtime.Environment(spec.Env, env)
	spec.WorkingDir = at.code
	spec.Command = nil
	spec.Entrypoint, err = f.command(name, at)
	return err
}

// command returns what runs a runtime's functions on this machine.
func (f *Functions) command(name string, at places) ([]string, error) {
	program := func(names ...string) (string, error) {
		for _, n := range names {
			path, err := exec.LookPath(n)
			if err == nil && exec.Command(path, "--version").Run() == nil { // a version manager has names of what it hasn't chosen
				return path, nil
			}
		}
		return "", fmt.Errorf("this machine has no %s, which runs functions of %s here", names[len(names)-1], name)
	}
	switch {
	case strings.HasPrefix(name, "python"):
		python, err := program(name, "python3")
		return []string{python, f.bootstrap("bootstrap.py")}, err
	case strings.HasPrefix(name, "nodejs"):
		node, err := program("node")
		return []string{node, f.bootstrap("bootstrap.mjs")}, err
	}
	path, err := bootstrapIn(at)
	return []string{path}, err
}
