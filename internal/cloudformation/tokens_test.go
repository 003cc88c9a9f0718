package cloudformation

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/state"
)

// TestRepeatedTokens: a call that is made again with its token is answered as the first time and does nothing, and a token of another action is
// refused.
func TestRepeatedTokens(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	name := aws.String("s")
	taken := func(what string, err error) {
		t.Helper()
		if refused := (*types.TokenAlreadyExistsException)(nil); !errors.As(err, &refused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	create := func(token string) (string, error) {
		out, err := w.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: name, TemplateBody: aws.String(sound), ClientRequestToken: &token})
		w.settle()
		if err != nil {
			return "", err
		}
		return *out.StackId, nil
	}
	id, err := create("one")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := create("one"); err != nil || again != id {
		t.Errorf("got %s, %v", again, err)
	}
	_, err = create("other")
	if exists := (*types.AlreadyExistsException)(nil); !errors.As(err, &exists) {
		t.Errorf("another creation: %v", err)
	}
	update := func(token, text string) error {
		_, err := w.UpdateStack(ctx, &cloudformation.UpdateStackInput{
			StackName: name, TemplateBody: &text, ClientRequestToken: &token, DisableRollback: aws.Bool(true),
		})
		w.settle()
		return err
	}
	taken("an update with a creation's token", update("one", stumbling))
	events := func() int { return len(w.reasons()) }
	w.take("taken")
	if err := update("two", stumbling); err != nil {
		t.Fatal(err)
	}
	before := events()
	if err := update("two", stumbling); err != nil || events() != before {
		t.Errorf("an update once more: %v", err)
	}
	taken("a creation with an update's token", func() error { _, err := create("two"); return err }())
	rollBack := func(token string) error {
		_, err := w.RollbackStack(ctx, &cloudformation.RollbackStackInput{StackName: name, ClientRequestToken: &token})
		w.settle()
		return err
	}
	taken("a rollback with an update's token", rollBack("two"))
	for range 2 {
		if err := rollBack("three"); err != nil {
			t.Fatal(err)
		}
	}
	w.expect(types.StackStatusUpdateRollbackComplete)
	in := &cloudformation.CreateChangeSetInput{StackName: name, ChangeSetName: aws.String("c"), TemplateBody: aws.String(strings.Replace(sound, "one", "two", 1))}
	set, err := w.CreateChangeSet(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"four", "four"} {
		_, err := w.ExecuteChangeSet(ctx, &cloudformation.ExecuteChangeSetInput{ChangeSetName: set.Id, ClientRequestToken: &token})
		if err != nil {
			t.Error(err)
		}
		w.settle()
	}
	w.expect(types.StackStatusUpdateComplete)
	_, err = w.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: name, ClientRequestToken: aws.String("four")})
	taken("a deletion", err)
}

// TestTokensAreBounded: a stack remembers its last tokens alone.
func TestTokensAreBounded(t *testing.T) {
	s := new(state.Stack)
	for range 100 {
		s.Tokened("UpdateStack", state.NewID())
	}
	if len(s.Tokens) != 32 {
		t.Errorf("it has %d", len(s.Tokens))
	}
}

// TestOneTokenAtOnce: calls that come at the same time with one token make one stack, and are answered alike.
func TestOneTokenAtOnce(t *testing.T) {
	for round := range 20 {
		w := newWorld(t, nil)
		ids := make(chan string)
		for range 4 {
			go func() {
				out, err := w.CreateStack(t.Context(), &cloudformation.CreateStackInput{
					StackName: aws.String("s"), TemplateBody: aws.String(sound), ClientRequestToken: aws.String("one"),
				})
				if err != nil {
					ids <- err.Error()
					return
				}
				ids <- *out.StackId
			}()
		}
		got := map[string]bool{}
		for range 4 {
			got[<-ids] = true
		}
		if len(got) != 1 {
			t.Fatalf("round %d: got %v", round, slices.Collect(maps.Keys(got)))
		}
	}
}
