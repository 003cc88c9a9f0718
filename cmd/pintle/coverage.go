package main

import (
	"fmt"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/appautoscaling"
	"github.com/pintle/pintle/internal/autoscaling"
	"github.com/pintle/pintle/internal/cloudwatch"
	"github.com/pintle/pintle/internal/ec2"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/iam/sts"
	"github.com/pintle/pintle/internal/logs"
	"github.com/pintle/pintle/internal/s3"
	"github.com/pintle/pintle/internal/sqs"
	"github.com/pintle/pintle/internal/wire"
)

type coverageCmd struct{}

// Run prints docs/coverage.md.
func (coverageCmd) Run() error {
	text, err := coverage()
	if err != nil {
		return err
	}
	fmt.Print(text)
	return nil
}

// coverage asks the wire, which looks at the services' methods; none is called.
func coverage() (string, error) {
	h, err := wire.New(wire.Options{},
		wire.ECS(ecs.New(nil, nil, ecs.Options{})), wire.EC2(ec2.New(nil, ec2.Options{})), wire.Logs(logs.New(nil, logs.Options{})),
		wire.CloudWatch(cloudwatch.New(nil, nil, cloudwatch.Options{})),
		wire.AutoScaling(autoscaling.New(nil, autoscaling.Options{})), wire.ApplicationAutoScaling(appautoscaling.New(nil, appautoscaling.Options{})),
		wire.S3(s3.New(nil, s3.Options{})), wire.SQS(sqs.New(nil, sqs.Options{})), wire.STS(sts.New(account.Account{}, nil)))
	if err != nil {
		return "", err
	}
	return h.Coverage(), nil
}
