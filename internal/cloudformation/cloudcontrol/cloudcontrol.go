// Package cloudcontrol is the AWS Cloud Control API: a Service with the methods of the SDK's client. It reads and lists resources by
// CloudFormation's resource types, and keeps the requests to make, change and delete them, which package requests carries out. It knows
// nothing of stacks.
package cloudcontrol

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/requests"
	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Service is the Cloud Control API for one account in one region.
type Service struct {
	account account.Account
	store   *state.Store
	loop    *requests.Loop
}

// New returns the service. The loop carries out what it's asked for.
func New(store *state.Store, loop *requests.Loop, owner account.Account) *Service {
	return &Service{owner, store, loop}
}

// typed returns a type that can do what is asked.
func typed(name, version *string, action string) (resources.Type, error) {
	kind := resources.Lookup(*name)
	switch {
	case kind == nil:
		return nil, &types.TypeNotFoundException{Message: account.Message("The type '%s' cannot be found.", *name)}
	case version != nil:
		return nil, account.Refuse("ValidationException", "Pintle has one version of each type: leave TypeVersionId out.")
	case !kind.IsReadable() || len(kind.Identifier()) == 0:
		return nil, unsupported(*name, action)
	}
	return kind, nil
}

func unsupported(name, action string) error {
	return &types.UnsupportedActionException{Message: account.Message("Resource type %s does not support %s action", name, action)}
}

// as returns a context in which calls are made by the caller, on behalf of CloudFormation's types.
func (s *Service) as(ctx context.Context) context.Context {
	who := call.From(ctx).Identity
	who.Principal = cmp.Or(who.Principal, s.account.Root())
	return call.With(ctx, call.Call{Service: "cloudformation", Identity: who})
}

// identified reads what identifies a resource: values joined by |, or a JSON object of them.
func identified(kind resources.Type, text string) (map[string]string, error) {
	names := kind.Identifier()
	identity := map[string]string{}
	if strings.HasPrefix(text, "{") {
		if json.Unmarshal([]byte(text), &identity) != nil {
			return nil, badIdentifier(text)
		}
	} else {
		for i, value := range strings.SplitN(text, "|", len(names)) {
			identity[names[i]] = value
		}
	}
	if kind.PhysicalID(identity) == "" || len(identity) != len(names) {
		return nil, badIdentifier(text)
	}
	return identity, nil
}

func badIdentifier(text string) error {
	return account.Refuse("ValidationException", "Identifier %s is not valid for identifier schema", text)
}

// found is a resource that is there.
type found struct {
	kind     resources.Type
	identity map[string]string
	id       string
	live     map[string]any
}

// find reads a resource.
func (s *Service) find(ctx context.Context, name string, kind resources.Type, identifier string) (*found, error) {
	identity, err := identified(kind, identifier)
	if err != nil {
		return nil, err
	}
	f := &found{kind: kind, identity: identity, id: kind.PhysicalID(identity)}
	f.live, err = kind.Live(ctx, s.loop.Reading(name), f.id, kind.Named(identity))
	if resources.IsMissing(err) {
		return nil, &types.ResourceNotFoundException{
			Message: account.Message("Resource of type '%s' with identifier '%s' was not found.", name, identifier),
		}
	}
	return f, handled(err)
}

// handled turns a service's refusal into the error by which Cloud Control tells of it.
func handled(err error) error {
	var refused smithy.APIError
	if !errors.As(err, &refused) {
		return err
	}
	message := account.Message("%s", refused.ErrorMessage())
	switch resources.HandlerCode(refused) {
	case "NotFound":
		return &types.ResourceNotFoundException{Message: message}
	case "AccessDenied":
		return account.Refuse("AccessDeniedException", "%s", refused.ErrorMessage())
	case "InvalidRequest":
		return &types.InvalidRequestException{Message: message}
	case "ServiceLimitExceeded":
		return &types.ServiceLimitExceededException{Message: message}
	case "Throttling":
		return &types.ThrottlingException{Message: message}
	}
	return &types.GeneralServiceException{Message: message}
}

// GetResource reads a resource as it is now.
func (s *Service) GetResource(ctx context.Context, in *cloudcontrol.GetResourceInput) (*cloudcontrol.GetResourceOutput, error) {
	if err := refuseRole(in.RoleArn); err != nil {
		return nil, err
	}
	kind, err := typed(in.TypeName, in.TypeVersionId, "READ")
	if err != nil {
		return nil, err
	}
	ctx = s.as(ctx)
	f, err := s.find(ctx, *in.TypeName, kind, *in.Identifier)
	if err != nil {
		return nil, err
	}
	model, err := s.model(ctx, *in.TypeName, f)
	if err != nil {
		return nil, err
	}
	return &cloudcontrol.GetResourceOutput{
		TypeName: in.TypeName,
		ResourceDescription: &types.ResourceDescription{
			Identifier: new(requests.Identifier(kind, f.identity)),
			Properties: new(jsonOf(model)),
		},
	}, nil
}

// model returns a resource's properties with its attributes, which can only be read.
func (s *Service) model(ctx context.Context, name string, f *found) (map[string]any, error) {
	made, err := f.kind.Read(ctx, s.loop.Reading(name), f.id, f.live)
	if err != nil {
		return nil, handled(err)
	}
	model := map[string]any{}
	for name, value := range f.identity {
		model[name] = value
	}
	for name, value := range made.Attributes {
		model[name] = value
	}
	for name, value := range f.live {
		model[name] = value
	}
	return model, nil
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "{}" // it's made of what JSON has
	}
	return string(text)
}

// ListResources lists the resources of a type.
func (s *Service) ListResources(ctx context.Context, in *cloudcontrol.ListResourcesInput) (*cloudcontrol.ListResourcesOutput, error) {
	if err := refuseRole(in.RoleArn); err != nil {
		return nil, err
	}
	kind, err := typed(in.TypeName, in.TypeVersionId, "LIST")
	if err != nil {
		return nil, err
	}
	if !kind.IsListable() {
		return nil, unsupported(*in.TypeName, "LIST")
	}
	model := map[string]any{}
	if in.ResourceModel != nil {
		if model, err = object(*in.ResourceModel); err != nil {
			return nil, err
		}
	}
	pages := listing("ListResources " + *in.TypeName)
	if _, _, err := pages.Start(in.MaxResults, in.NextToken); err != nil {
		return nil, err
	}
	ctx, step := s.as(ctx), s.loop.Reading(*in.TypeName)
	ids, err := kind.List(ctx, step, model)
	if missing := (*template.Error)(nil); errors.As(err, &missing) {
		return nil, &types.InvalidRequestException{Message: &missing.Message}
	}
	if err != nil {
		return nil, handled(err)
	}
	page, next, err := account.Sorted(pages, ids, in.MaxResults, in.NextToken, strings.Clone)
	if err != nil {
		return nil, err
	}
	out := &cloudcontrol.ListResourcesOutput{TypeName: in.TypeName, ResourceDescriptions: []types.ResourceDescription{}, NextToken: next}
	for _, id := range page {
		identity, err := kind.Identify(ctx, step, id, model)
		if err != nil {
			continue // it's gone by now
		}
		out.ResourceDescriptions = append(out.ResourceDescriptions, types.ResourceDescription{
			Identifier: new(requests.Identifier(kind, identity)),
			Properties: new(jsonOf(identity)),
		})
	}
	return out, nil
}

func listing(kind string) account.List {
	return account.List{
		Kind:     "cloudcontrol:" + kind,
		Default:  20,
		Most:     100,
		BadLimit: func(int) error { return account.Refuse("ValidationException", "MaxResults must be between 1 and 100") },
		BadToken: func() error { return account.Refuse("ValidationException", "NextToken is not valid") },
	}
}

// object reads a JSON object.
func object(text string) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil || v == nil {
		return nil, account.Refuse("ValidationException", "The properties must be a JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, account.Refuse("ValidationException", "The properties must be one JSON object")
	}
	return v, nil
}

// check checks properties by a type's schema.
func check(kind resources.Type, properties map[string]any, exists bool) error {
	faults := kind.CheckDesired(properties, exists)
	if len(faults) == 0 {
		return nil
	}
	return account.Refuse("ValidationException", "Model validation failed (%s)", strings.Join(faults, ", "))
}

// progress returns a request as it's shown.
func progress(r *state.ResourceRequest) *types.ProgressEvent {
	e := &types.ProgressEvent{
		TypeName:        &r.Type,
		RequestToken:    &r.Token,
		Operation:       r.Operation,
		OperationStatus: r.Status,
		EventTime:       aws.Time(r.At),
		ErrorCode:       r.ErrorCode,
	}
	if r.Identifier != "" {
		e.Identifier = &r.Identifier
	}
	if r.Message != "" {
		e.StatusMessage = new(r.Message[:min(len(r.Message), 2048)])
	}
	return e
}
