package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// secretsTimeout is how long fetching a container's secrets may take.
const secretsTimeout = time.Minute

// addSecrets fetches a container's secrets and adds them to its environment. They are in no record: a container that is made anew, as by
// its restart policy, has them fetched anew.
func (t *task) addSecrets(ctx context.Context, c *acs.Container, spec *runtime.Spec) error {
	wanted := slices.DeleteFunc(slices.Clone(c.Secrets), func(s acs.Secret) bool { return s.Target != "" })
	if len(wanted) == 0 {
		return nil
	}
	if t.engine.opts.Secrets == nil {
		return errors.New("this node can't fetch secrets")
	}
	role := t.payload().ExecutionRoleCredentials
	if role == nil {
		return errors.New("the task has no execution role")
	}
	ctx, cancel := context.WithTimeout(ctx, secretsTimeout)
	defer cancel()
	values, err := t.engine.opts.Secrets(ctx, *role, wanted)
	if err != nil {
		return err
	}
	for _, s := range wanted {
		value, ok := values[s.ValueFrom]
		if !ok || strings.ContainsRune(value, 0) {
			return fmt.Errorf("the value of %s can't be an environment variable", s.ValueFrom)
		}
		spec.Env = slices.DeleteFunc(spec.Env, func(e string) bool { return strings.HasPrefix(e, s.Name+"=") })
		spec.Env = append(spec.Env, s.Name+"="+value)
	}
	return nil
}
