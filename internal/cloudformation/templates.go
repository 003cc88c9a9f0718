package cloudformation

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
)

// ValidateTemplate checks a template's form and its references.
func (s *Service) ValidateTemplate(
	ctx context.Context, in *cloudformation.ValidateTemplateInput,
) (*cloudformation.ValidateTemplateOutput, error) {
	t, err := s.parse(ctx, in.TemplateBody, in.TemplateURL)
	if err != nil {
		return nil, err
	}
	out := &cloudformation.ValidateTemplateOutput{
		Description:        optional(t.Description),
		DeclaredTransforms: t.Transforms,
		Parameters:         []types.TemplateParameter{},
	}
	out.Capabilities, out.CapabilitiesReason = capabilities(t)
	for i := range t.Parameters {
		p := &t.Parameters[i]
		out.Parameters = append(out.Parameters, types.TemplateParameter{
			ParameterKey: &p.Name,
			DefaultValue: p.Default,
			NoEcho:       &p.NoEcho,
			Description:  optional(p.Description),
		})
	}
	return out, nil
}

// calculator is where AWS works out what something costs there.
const calculator = "https://calculator.aws/#/"

// EstimateTemplateCost checks a template and its parameters, as the creation of a stack does. Nobody bills a machine of one's own by the hour, so
// the answer names AWS's calculator, as AWS's answer does, without anything filled in.
func (s *Service) EstimateTemplateCost(
	ctx context.Context, in *cloudformation.EstimateTemplateCostInput,
) (*cloudformation.EstimateTemplateCostOutput, error) {
	stack, err := s.newStack("estimate")
	if err != nil {
		return nil, err
	}
	_, err = s.source(ctx, stack, deployment{
		body:         in.TemplateBody,
		location:     in.TemplateURL,
		parameters:   in.Parameters,
		capabilities: types.Capability("").Values(), // there is nothing to acknowledge: nothing is made
	})
	if err != nil {
		return nil, err
	}
	return &cloudformation.EstimateTemplateCostOutput{Url: aws.String(calculator)}, nil
}

// GetTemplateSummary tells what is in a template.
func (s *Service) GetTemplateSummary(
	ctx context.Context, in *cloudformation.GetTemplateSummaryInput,
) (*cloudformation.GetTemplateSummaryOutput, error) {
	switch {
	case in.StackSetName != nil:
		return nil, &types.StackSetNotFoundException{Message: aws.String("StackSet " + *in.StackSetName + " not found")}
	}
	t, err := s.summarized(ctx, in)
	if err != nil {
		return nil, err
	}
	out := &cloudformation.GetTemplateSummaryOutput{
		Description:        optional(t.Description),
		Version:            optional(t.Version),
		DeclaredTransforms: t.Transforms,
		Parameters:         []types.ParameterDeclaration{}, // `aws cloudformation deploy` fails without a list
	}
	out.Capabilities, out.CapabilitiesReason = capabilities(t)
	if t.Metadata != nil {
		metadata, err := json.Marshal(t.Metadata)
		if err != nil {
			return nil, err
		}
		out.Metadata = aws.String(string(metadata))
	}
	for i := range t.Parameters {
		out.Parameters = append(out.Parameters, declaration(&t.Parameters[i]))
	}
	for i := range t.Resources {
		if name := t.Resources[i].Type; !slices.Contains(out.ResourceTypes, name) {
			out.ResourceTypes = append(out.ResourceTypes, name)
		}
	}
	if c := in.TemplateSummaryConfig; c != nil && aws.ToBool(c.TreatUnrecognizedResourceTypesAsWarnings) {
		unknown := slices.DeleteFunc(slices.Clone(out.ResourceTypes), func(name string) bool { return resources.Lookup(name) != nil })
		out.Warnings = &types.Warnings{UnrecognizedResourceTypes: unknown}
	}
	out.ResourceIdentifierSummaries = identifiers(t)
	return out, nil
}

// summarized returns the template that a call is about: a new one, or a stack's.
func (s *Service) summarized(ctx context.Context, in *cloudformation.GetTemplateSummaryInput) (*template.Template, error) {
	if in.StackName == nil {
		return s.parse(ctx, in.TemplateBody, in.TemplateURL)
	}
	text, err := templateOf(s.store.View(), *in.StackName)
	if err != nil {
		return nil, err
	}
	t, err := template.Parse([]byte(*text))
	return t, refused(err)
}

func declaration(p *template.Parameter) types.ParameterDeclaration {
	return types.ParameterDeclaration{
		ParameterKey:         &p.Name,
		ParameterType:        &p.Type,
		DefaultValue:         p.Default,
		NoEcho:               &p.NoEcho,
		Description:          optional(p.Description),
		ParameterConstraints: &types.ParameterConstraints{AllowedValues: p.AllowedValues},
	}
}

// capabilities returns what must be acknowledged before the template is deployed, and why.
func capabilities(t *template.Template) (needed []types.Capability, reason *string) {
	names, resources := t.Capabilities()
	if len(t.Transforms) > 0 {
		names, resources = append(names, string(types.CapabilityCapabilityAutoExpand)), append(resources, t.Transforms...)
	}
	if names == nil {
		return nil, nil
	}
	for _, name := range names {
		needed = append(needed, types.Capability(name))
	}
	return needed, aws.String("The following resource(s) require capabilities: [" + strings.Join(resources, ", ") + "]")
}

// optional returns nil for an empty string, which isn't in answers.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
