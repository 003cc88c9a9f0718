package ssm

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// maxLabels is how many labels a version can have.
const maxLabels = 10

var labelPattern = regexp.MustCompile(`^[a-zA-Z_.-][a-zA-Z0-9_.-]{0,99}$`)

// isLabel reports whether a text may be a label: API_LabelParameterVersion.
func isLabel(text string) bool {
	lower := strings.ToLower(text)
	return labelPattern.MatchString(text) && !strings.HasPrefix(lower, "aws") && !strings.HasPrefix(lower, "ssm")
}

// labelled returns the version of a parameter that has a label, or nil.
func labelled(v *state.View, name, label string) *state.ParameterVersion {
	for row := range v.ParameterVersionsAfter(name, 0) {
		if slices.Contains(row.Labels, label) {
			return row
		}
	}
	return nil
}

// LabelParameterVersion attaches labels to a version of a parameter. A label that another version has moves.
func (s *Service) LabelParameterVersion(
	ctx context.Context, in *ssm.LabelParameterVersionInput,
) (*ssm.LabelParameterVersionOutput, error) {
	out := &ssm.LabelParameterVersionOutput{InvalidLabels: []string{}}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		row, err := s.version(tx.View, *in.Name, aws.ToInt64(in.ParameterVersion))
		if err != nil {
			return err
		}
		out.ParameterVersion = row.Version
		labels := slices.Clone(row.Labels)
		for _, label := range in.Labels {
			if !isLabel(label) {
				out.InvalidLabels = append(out.InvalidLabels, label)
			} else if !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
		}
		if len(labels) > maxLabels {
			return &types.ParameterVersionLabelLimitExceeded{Message: account.Message(
				"A parameter version can have maximum %d labels. Move one or more labels to another version and try again.", maxLabels)}
		}
		for _, label := range labels {
			if old := labelled(tx.View, row.Name, label); old != nil && old.Version != row.Version {
				relabel(tx, old, slices.DeleteFunc(slices.Clone(old.Labels), func(l string) bool { return l == label }))
			}
		}
		relabel(tx, row, labels)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// UnlabelParameterVersion removes labels from a version of a parameter.
func (s *Service) UnlabelParameterVersion(
	ctx context.Context, in *ssm.UnlabelParameterVersionInput,
) (*ssm.UnlabelParameterVersionOutput, error) {
	out := &ssm.UnlabelParameterVersionOutput{InvalidLabels: []string{}, RemovedLabels: []string{}}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		row, err := s.version(tx.View, *in.Name, *in.ParameterVersion)
		if err != nil {
			return err
		}
		labels := slices.Clone(row.Labels)
		for _, label := range in.Labels {
			i := slices.Index(labels, label)
			if i < 0 {
				out.InvalidLabels = append(out.InvalidLabels, label)
				continue
			}
			labels = slices.Delete(labels, i, i+1)
			out.RemovedLabels = append(out.RemovedLabels, label)
		}
		relabel(tx, row, labels)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// version returns a version of a parameter; 0 means the latest.
func (s *Service) version(v *state.View, name string, version int64) (*state.ParameterVersion, error) {
	p := s.parameter(v, reference{names: []string{strings.TrimSpace(name)}})
	if p == nil {
		return nil, notFound(name)
	}
	return versionOf(v, p, version)
}

func relabel(tx *state.Tx, row *state.ParameterVersion, labels []string) {
	changed := *row
	changed.Labels = labels
	tx.ParameterVersions.Put(&changed)
}
