package stacks

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Drift is how a resource differs from what the stack made of it. Values that the template keeps secret are masked.
type Drift struct {
	Expected    map[string]any
	Actual      map[string]any `json:",omitempty"` // nil if the resource is gone
	Differences []resources.Difference
}

// CheckDrift looks for drift in resources of a stack. What it finds is in the rows that it returns, in their order. The calls are made by
// whoever makes this one.
func (l *Loop) CheckDrift(ctx context.Context, s *state.Stack, rows []*state.StackResource) ([]*state.ResourceDrift, error) {
	v := l.rows.View()
	src, err := l.parsed(ctx, v, s, s.Source)
	if err != nil {
		return nil, err
	}
	found, drifts, err := l.findDrift(ctx, v, s, rows)
	if err != nil {
		return nil, err
	}
	for i, d := range drifts {
		if d == nil {
			continue
		}
		l.mask(ctx, src, rows[i], d)
		if found[i].Found, err = l.seal(found[i].Stack, driftOf+found[i].Name, d); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// findDrift looks at several resources at once.
func (l *Loop) findDrift(
	ctx context.Context, v *state.View, s *state.Stack, rows []*state.StackResource,
) (found []*state.ResourceDrift, drifts []*Drift, err error) {
	who := call.From(ctx).Identity
	who.Principal = cmp.Or(who.Principal, l.opts.Account.Root())
	group, ctx := errgroup.WithContext(call.With(ctx, call.Call{Service: "cloudformation", Stack: *s.StackId, Identity: who}))
	group.SetLimit(atOnce)
	found, drifts = make([]*state.ResourceDrift, len(rows)), make([]*Drift, len(rows))
	for i, row := range rows {
		group.Go(func() (err error) {
			found[i], drifts[i], err = l.checkDrift(ctx, v, s, row)
			return err
		})
	}
	return found, drifts, group.Wait()
}

// checkDrift looks at one resource. What a service refuses to tell leaves it unknown.
func (l *Loop) checkDrift(
	ctx context.Context, v *state.View, s *state.Stack, row *state.StackResource,
) (*state.ResourceDrift, *Drift, error) {
	out := &state.ResourceDrift{Stack: row.Stack, Name: row.Name, PhysicalID: row.PhysicalID, At: l.opts.Account.Now()}
	kind := resources.Lookup(row.Type)
	if kind == nil || !kind.IsReadable() {
		out.Status = types.StackResourceDriftStatusNotChecked
		return out, nil, nil
	}
	properties, err := l.unseal(row.Stack, row.Name, row.Properties)
	if err != nil {
		return nil, nil, err
	}
	drift := &Drift{Expected: kind.Written(properties)}
	live, err := kind.Live(ctx, l.reading(v, s, row), row.PhysicalID, properties)
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case resources.IsMissing(err):
		out.Status = types.StackResourceDriftStatusDeleted
		return out, drift, nil
	case err != nil:
		out.Status = types.StackResourceDriftStatusUnknown
		return out, nil, nil //nolint:nilerr // the status tells
	}
	drift.Actual = about(live, drift.Expected)
	drift.Differences = resources.Differences(drift.Expected, drift.Actual)
	out.Status = types.StackResourceDriftStatusInSync
	if len(drift.Differences) > 0 {
		out.Status = types.StackResourceDriftStatusModified
	}
	return out, drift, nil
}

const driftOf = "drift of "

// FoundOf returns what a search for drift found of a resource.
func (l *Loop) FoundOf(d *state.ResourceDrift) (Drift, error) {
	var drift Drift
	all, err := l.unseal(d.Stack, driftOf+d.Name, d.Found)
	if err != nil {
		return drift, err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return drift, err
	}
	return drift, json.Unmarshal(text, &drift)
}

// about returns those of a resource's properties that the template speaks of.
func about(live, expected map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range live {
		if _, there := expected[name]; there {
			out[name] = value
		}
	}
	return out
}

// reading returns what the calls that read a resource need to know.
func (l *Loop) reading(v *state.View, s *state.Stack, row *state.StackResource) resources.Step {
	step := l.stepOf(s, row)
	step.Others = func(name string) (others []resources.Other) {
		for other := range v.ResourcesOf(row.Stack) {
			if other.Type != name || other.Superseded || other.PhysicalID == "" || isGone(other) {
				continue
			}
			properties, err := l.unseal(other.Stack, other.Name, other.Properties)
			if err == nil {
				others = append(others, resources.Other{ID: other.PhysicalID, Properties: properties})
			}
		}
		return others
	}
	return step
}

// mask puts what is shown of a template in the place of what it keeps secret, wherever that is found, and of what is in its place now.
func (l *Loop) mask(ctx context.Context, src *source, row *state.StackResource, drift *Drift) {
	r := src.Resource(row.Name)
	if r == nil {
		return
	}
	properties, text, err := l.wanted(ctx, src, r)
	if err != nil { // something that it refers to isn't there any more: nobody knows what is secret
		drift.Expected, drift.Actual = map[string]any{}, nil
		for i := range drift.Differences {
			drift.Differences[i].Expected, drift.Differences[i].Actual = Masked, Masked
		}
		return
	}
	var shown any
	secrets := map[string]string{}
	if json.Unmarshal([]byte(text), &shown) == nil {
		findSecrets(properties, shown, secrets)
	}
	if len(secrets) == 0 {
		return
	}
	for i, d := range drift.Differences {
		if cover(d.Expected, secrets) != nil && !isEqual(cover(d.Expected, secrets), d.Expected) {
			for name := range drift.Actual {
				if strings.HasPrefix(d.Path+"/", "/"+name+"/") {
					drift.Actual[name] = Masked
				}
			}
			drift.Differences[i].Actual = Masked
		}
		drift.Differences[i].Expected = cover(d.Expected, secrets)
		drift.Differences[i].Actual = cover(drift.Differences[i].Actual, secrets)
	}
	drift.Expected, _ = cover(drift.Expected, secrets).(map[string]any)
	drift.Actual, _ = cover(drift.Actual, secrets).(map[string]any)
}

func isEqual(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// cover returns a value with secrets replaced by what is shown of them.
func cover(v any, secrets map[string]string) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return nil
		}
		out := map[string]any{}
		for name, member := range v {
			out[name] = cover(member, secrets)
		}
		return out
	case []any:
		out := []any{}
		for _, one := range v {
			out = append(out, cover(one, secrets))
		}
		return out
	}
	text, isText := template.Text(v)
	if !isText {
		return v
	}
	covered := text
	for _, secret := range slices.SortedFunc(maps.Keys(secrets), func(a, b string) int { return len(b) - len(a) }) {
		covered = strings.ReplaceAll(covered, secret, secrets[secret])
	}
	if covered == text {
		return v
	}
	return covered
}

// Stands lists the resources of a stack that can be checked for drift: those that are made.
func Stands(v *state.View, stack string) (rows []*state.StackResource) {
	for r := range v.ResourcesOf(stack) {
		if !r.Superseded && !isGone(r) && !isNeverMade(r) {
			rows = append(rows, r)
		}
	}
	return rows
}
