package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// secretsTimeout is how long fetching a container's secrets may take, and a file of variables.
const secretsTimeout = time.Minute

// The container's secrets are in no record: a container that is made anew, as by its restart policy, has them fetched anew.

// fetch returns secrets' values by where they come from.
func (t *task) fetch(ctx context.Context, wanted []acs.Secret) (map[string]string, error) {
	if t.engine.opts.Secrets == nil {
		return nil, errors.New("this node can't fetch secrets")
	}
	role, err := t.executionRole()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, secretsTimeout)
	defer cancel()
	return t.engine.opts.Secrets(ctx, role, wanted)
}

func (t *task) executionRole() (acs.IAMRoleCredentials, error) {
	if role := t.payload().ExecutionRoleCredentials; role != nil {
		return *role, nil
	}
	return acs.IAMRoleCredentials{}, errors.New("the task has no execution role")
}

// addSecrets adds a container's secrets to its environment, and those of log drivers' options if it's the log router.
func (t *task) addSecrets(ctx context.Context, c *acs.Container, spec *runtime.Spec) error {
	wanted := slices.DeleteFunc(slices.Clone(c.Secrets), func(s acs.Secret) bool { return s.Target == logDriver })
	if c.FirelensConfiguration != nil {
		wanted = append(wanted, t.routedSecrets()...)
	}
	if len(wanted) == 0 {
		return nil
	}
	values, err := t.fetch(ctx, wanted)
	if err != nil {
		return err
	}
	for _, s := range wanted {
		value, ok := values[s.ValueFrom]
		if !ok || strings.ContainsRune(value, 0) {
			return fmt.Errorf("the value of %s can't be an environment variable", s.ValueFrom)
		}
		setVariable(spec, s.Name, value)
	}
	return nil
}

func setVariable(spec *runtime.Spec, name, value string) {
	spec.Env = slices.DeleteFunc(spec.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	spec.Env = append(spec.Env, name+"="+value)
}

// registryAuth returns what a container's image is pulled with: the user name and password in a secret, or nil for nobody's.
func (t *task) registryAuth(ctx context.Context, c *acs.Container) (*runtime.RegistryAuth, error) {
	auth := c.RegistryAuthentication
	switch {
	case auth == nil:
		return nil, nil
	case auth.Type == "ecr" && auth.ECRAuthData != nil && t.engine.opts.Registry != nil:
		return t.ecrAuth(ctx, auth.ECRAuthData)
	}
	if auth.Type != "asm" || auth.ASMAuthData == nil {
		return nil, fmt.Errorf("this node can't authenticate to registries with the type %q", auth.Type)
	}
	from := auth.ASMAuthData.CredentialsParameter
	values, err := t.fetch(ctx, []acs.Secret{{ValueFrom: from, Provider: "asm", Region: auth.ASMAuthData.Region}})
	if err != nil {
		return nil, err
	}
	var known struct{ Username, Password string }
	if json.Unmarshal([]byte(values[from]), &known) != nil || known.Username == "" || known.Password == "" { // the error would tell of it
		return nil, fmt.Errorf("the secret %s isn't a JSON object with a username and a password", from)
	}
	return &runtime.RegistryAuth{Username: known.Username, Password: known.Password}, nil
}

// ecrAuth returns what an image of ECR is pulled with, as the task's execution role or as the node.
func (t *task) ecrAuth(ctx context.Context, from *acs.ECRAuthData) (*runtime.RegistryAuth, error) {
	var role *acs.IAMRoleCredentials
	if from.UseExecutionRole {
		as, err := t.executionRole()
		if err != nil {
			return nil, err
		}
		role = &as
	}
	ctx, cancel := context.WithTimeout(ctx, secretsTimeout)
	defer cancel()
	return t.engine.opts.Registry(ctx, role, *from)
}

// addFiles adds the variables of a container's files to its environment, unless the container has them itself. Of two files with a
// variable, the first counts.
func (t *task) addFiles(ctx context.Context, c *acs.Container, spec *runtime.Spec) error {
	if len(c.EnvironmentFiles) == 0 {
		return nil
	}
	if t.engine.opts.EnvironmentFile == nil {
		return errors.New("this node can't fetch them")
	}
	role, err := t.executionRole()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, secretsTimeout)
	defer cancel()
	seen := map[string]bool{}
	for _, f := range c.EnvironmentFiles {
		text, err := t.engine.opts.EnvironmentFile(ctx, role, f.Value)
		if err != nil {
			return err
		}
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("the env file %s has a zero byte", f.Value)
		}
		variables := parseVariables(text)
		for _, v := range variables {
			if _, own := c.Environment[v.name]; !own && !seen[v.name] {
				setVariable(spec, v.name, v.value)
			}
		}
		for _, v := range variables {
			seen[v.name] = true
		}
	}
	return nil
}

// variable is an environment variable.
type variable struct{ name, value string }

// parseVariables reads a file of variables as Amazon's agent does: a line each, NAME=VALUE, taken as it is, quotes and spaces included.
// Comments begin with # in the first column. Lines without a name, an equals sign or a value are skipped. The last line for a name counts.
func parseVariables(text string) (all []variable) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		name, value, _ := strings.Cut(line, "=")
		if name != "" && value != "" && !strings.HasPrefix(line, "#") {
			all = append(all, variable{name, value})
		}
	}
	return all
}

// logDriver is the target of secrets that are options of a log driver.
const logDriver = "LOG_DRIVER"

// checkLogSecrets refuses secret options of log drivers that would never get them.
func checkLogSecrets(c *acs.Container) error {
	if !isRouted(c) && slices.ContainsFunc(c.Secrets, func(s acs.Secret) bool { return s.Target == logDriver }) {
		return fmt.Errorf("on this node only the log driver %s has secret options", routing)
	}
	return nil
}

// logVariable names the router's variable with the value of a container's secret option. The router's configuration refers to it.
func logVariable(container, option int) string {
	return fmt.Sprintf("LOG_SECRET_%d_%d", container, option)
}

// routedSecrets returns the secret options of the containers whose logs are routed, named after the router's variables.
func (t *task) routedSecrets() (all []acs.Secret) {
	for i, c := range t.rec.Task.Containers {
		for j, s := range c.Secrets {
			if s.Target == logDriver && isRouted(&c) {
				s.Name = logVariable(i, j)
				all = append(all, s)
			}
		}
	}
	return all
}

// secretOptions returns the variables of a container's secret options, by option.
func (t *task) secretOptions(container int) map[string]string {
	out := map[string]string{}
	for j, s := range t.rec.Task.Containers[container].Secrets {
		if s.Target == logDriver {
			out[s.Name] = logVariable(container, j)
		}
	}
	return out
}
