package plane

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/events"
	"github.com/pintle/pintle/internal/lambda"
	"github.com/pintle/pintle/internal/logs"
	"github.com/pintle/pintle/internal/schedules"
	"github.com/pintle/pintle/internal/sns"
	"github.com/pintle/pintle/internal/state"
)

// hookTimeout is how long a web hook may take.
const hookTimeout = 10 * time.Second

// hookClient returns a client for URLs that callers have given.
func (p *Plane) hookClient() *http.Client {
	return delivery.HookClient(hookTimeout, p.options.WebhookTo)
}

// outbox returns a loop that delivers what a store owes.
func (p *Plane) outbox(o delivery.Outbox) *delivery.Loop {
	routes := append(delivery.Webhooks(p.hookClient()),
		delivery.Route{Prefix: sns.ARNPrefix, Tell: p.SNS.Tell},
		delivery.Route{Prefix: events.ARNPrefix, Tell: p.Events.Tell},
		delivery.Route{Prefix: ecs.DeploymentPrefix, Tell: p.ECS.Tell},
		delivery.Route{Prefix: schedules.ARNPrefix, Tell: p.Schedules.Tell},
		delivery.Route{Prefix: lambda.ARNPrefix, Tell: func(ctx context.Context, d delivery.Debt) error { return p.Lambda.Tell(ctx, d) }},
		delivery.Queue(p.sqs(), p.queueURL),
		logs.ToMetrics(p.cloudwatch()),
		delivery.Route{Prefix: state.PolicyPrefix, Tell: p.tellPolicy},
	)
	return delivery.New(o, delivery.Options{Now: p.now, Routes: routes, Log: p.log})
}

// owed returns the outbox of the rows' changes.
func (p *Plane) owed() state.Outbox { return state.Outbox{Store: p.State, Now: p.now} }

// tellPolicy tells a policy's scaler which alarm changed its state. The scaler reads the alarm itself.
func (p *Plane) tellPolicy(_ context.Context, d delivery.Debt) error {
	_, alarm, _ := strings.Cut(d.Source, ":alarm:")
	if strings.Contains(d.Destination, ":autoScalingGroupName/") {
		p.keeper.Tell(alarm)
	} else {
		p.Scaler.Tell(alarm)
	}
	return nil
}
