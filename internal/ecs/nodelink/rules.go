package nodelink

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2 "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/ec2/prefixlist"
	"github.com/pintle/pintle/internal/ec2/securitygroup"
	"github.com/pintle/pintle/internal/state"
)

// rulesPause is the least time between two looks for rules that have changed. While many tasks start, each changes what the
// others' groups let pass. Who has many addresses in its rules waits longer, by a pause for each pauseFor of them: a group of n
// machines means n messages of n addresses.
const (
	rulesPause = 500 * time.Millisecond
	pauseFor   = 500
)

// enforced is the attribute by which a node says whether rules hold there, and its value if they do.
const (
	enforcement = "pintle.security-groups"
	enforced    = "enforced"
)

// sendRules tells the node what the security groups of its tasks let pass, where that has changed since it was told. A node
// that has just connected is told of all tasks.
func (s *session) sendRules(ctx context.Context, v *state.View) error {
	now := s.link.opts.Now()
	s.late = now.Sub(s.rulesAt) < s.rulesPause
	if s.late || !s.enforces(v) {
		return nil
	}
	peers := 0
	running := map[string]bool{}
	r := s.newResolver(v)
	for t := range v.Tasks.By(state.TasksByInstance, s.instance) {
		if !shouldRun(t) || !s.isTold(*t.TaskArn) && statusToSend(t) != "" {
			continue // it gets its rules with its payload
		}
		running[*t.TaskArn] = true
		rules := r.of(t)
		if rules != nil {
			s.rulesAt = now
			peers = max(peers, countPeers(rules))
		}
		if !s.noteRules(*t.TaskArn, rules) {
			continue
		}
		if err := s.send(ctx, &acs.PintleTaskRules{TaskArn: *t.TaskArn, Rules: rules}); err != nil {
			return err
		}
	}
	s.rulesPause = rulesPause * time.Duration(1+peers/pauseFor)
	for arn := range s.rules {
		if !running[arn] {
			delete(s.rules, arn)
		}
	}
	return nil
}

// enforces reports whether rules hold on the node. Others are told of none, which spares simulated machines, of which there may be thousands.
func (s *session) enforces(v *state.View) bool {
	row := v.ContainerInstances.Get(s.instance)
	return row != nil && slices.ContainsFunc(row.Attributes, func(a types.Attribute) bool {
		return aws.ToString(a.Name) == enforcement && aws.ToString(a.Value) == enforced
	})
}

func countPeers(rules *acs.NetworkRules) (n int) {
	for _, r := range slices.Concat(rules.In, rules.Out) {
		n += len(r.Peers)
	}
	return n
}

// isTold reports whether a payload with the task was sent.
func (s *session) isTold(arn string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[arn] != nil
}

// noteRules notes what the node is told of a task, and reports whether that is news. No rules are no news for a task that had none.
func (s *session) noteRules(arn string, rules *acs.NetworkRules) bool {
	encoded, _ := json.Marshal(rules) // structs of strings and numbers can't fail
	was, told := s.rules[arn]
	if rules == nil && !told || bytes.Equal(was, encoded) {
		return false
	}
	s.rules[arn] = encoded
	return true
}

// resolver resolves the rules of a node's tasks from one view. It looks up each group and block once, since tasks share them.
type resolver struct {
	view       *state.View
	region     string
	ignored    bool     // the node doesn't enforce rules
	ofInstance []string // the groups of the node's machine
	members    map[string][]netip.Addr
	within     map[netip.Prefix][]netip.Addr
}

func (s *session) newResolver(v *state.View) *resolver {
	return &resolver{
		view:       v,
		region:     s.link.opts.Account.Region,
		ignored:    !s.enforces(v),
		ofInstance: v.InstanceGroups(s.instance),
		members:    map[string][]netip.Addr{},
		within:     map[netip.Prefix][]netip.Addr{},
	}
}

// of returns what a task's security groups let pass, or nil if it's in no group that exists. A node that doesn't enforce them is told only
// that there are some, so that it warns, and that only of groups which the task itself names.
func (r *resolver) of(t *state.Task) *acs.NetworkRules {
	if r.ignored {
		if slices.ContainsFunc(t.SecurityGroups, func(id string) bool { return r.view.SecurityGroups.Get(id) != nil }) {
			return &acs.NetworkRules{}
		}
		return nil
	}
	var rules []ec2.SecurityGroupRule
	found := false
	for _, id := range r.groupsOf(t) {
		found = found || r.view.SecurityGroups.Get(id) != nil
		for rule := range r.view.SecurityGroupRules.By(state.RulesByGroup, id) {
			rules = append(rules, rule.SecurityGroupRule)
		}
	}
	if !found {
		return nil
	}
	resolved := securitygroup.Resolve(rules, securitygroup.Directory{
		Members: func(group string) []netip.Addr { return once(r.members, group, r.view.GroupMembers) },
		Within:  func(block netip.Prefix) []netip.Addr { return once(r.within, block, r.view.MembersWithin) },
		Blocks:  r.blocks,
	})
	return &acs.NetworkRules{In: networkRules(resolved.In), Out: networkRules(resolved.Out)}
}

// once returns what is known of a key, or looks it up.
func once[K comparable, V any](known map[K]V, key K, find func(K) V) V {
	if _, ok := known[key]; !ok {
		known[key] = find(key)
	}
	return known[key]
}

// groupsOf returns a task's security groups. In network mode bridge these are its instance's.
func (r *resolver) groupsOf(t *state.Task) []string {
	if len(t.SecurityGroups) > 0 || len(r.ofInstance) == 0 {
		return t.SecurityGroups
	}
	td := r.view.TaskDefinitions.Get(*t.TaskDefinitionArn)
	if td == nil || td.NetworkMode != "" && td.NetworkMode != types.NetworkModeBridge {
		return nil
	}
	return r.ofInstance
}

// blocks returns the blocks of a prefix list.
func (r *resolver) blocks(id string) (out []netip.Prefix) {
	l := prefixlist.Find(r.region, id)
	if l == nil {
		return nil
	}
	for _, block := range l.Cidrs {
		out = append(out, netip.MustParsePrefix(block))
	}
	return out
}

func networkRules(rules []securitygroup.Rule) []acs.NetworkRule {
	out := []acs.NetworkRule{}
	for _, r := range rules {
		n := acs.NetworkRule{Protocol: r.Protocol, From: r.From, To: r.To}
		for _, p := range r.Peers {
			n.Peers = append(n.Peers, p.String())
		}
		out = append(out, n)
	}
	return out
}
