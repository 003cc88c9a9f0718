package plane

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/store/sqlite"
	"github.com/pintle/pintle/internal/wire/validation"
)

// words are values for members of inputs: many that some operation accepts, and a few that none does.
var words = []string{
	"", "a", "m1", "AWS/ECS", "n", "ecs", "service/default/web", "ecs:service:DesiredCount", "TargetTrackingScaling", "StepScaling",
	"Sum", "p99", "TM(10%:90%)",
	"GreaterThanThreshold", "LessThanLowerThreshold", "ALARM", "ALARM(a)", "ANOMALY_DETECTION_BAND(m1)", "SEARCH('{n}', 'Sum', 60)",
	"m1 * 2", "{", `{"widgets":[]}`,
	"rate(1 minute)", "cron(0 0 ? * MON *)", "Europe/Berlin", "ChangeInCapacity", "ALBRequestCountPerTarget", "app/a/1/targetgroup/b/2",
	"arn:aws:cloudwatch:us-east-1:000000000000:alarm:a", "\x00",
	"0 0 * * 1", "g", "i-00000000000000001", "Launch", "OldestInstance", "tag:k", "Rolling",
}

// likely are values that members of these names accept. Most members get theirs, so that calls get past validation.
var likely = map[string]string{
	"Namespace":             "n",
	"MetricName":            "m",
	"ServiceNamespace":      "ecs",
	"ScalableDimension":     "ecs:service:DesiredCount",
	"ResourceId":            "service/default/web",
	"Stat":                  "Sum",
	"Statistic":             "Average",
	"ComparisonOperator":    "GreaterThanThreshold",
	"AlarmName":             "a",
	"Name":                  "d",
	"Value":                 "v",
	"Key":                   "k",
	"PolicyName":            "p",
	"ScheduledActionName":   "s",
	"QueueName":             "q",
	"QueueUrl":              "http://localhost:4566/000000000000/q",
	"SourceArn":             "arn:aws:sqs:us-east-1:000000000000:q",
	"MessageBody":           "b",
	"DataType":              "String",
	"StringValue":           "v",
	"Label":                 "l",
	"Id":                    "m1",
	"TopicArn":              "arn:aws:sns:us-east-1:000000000000:d",
	"Protocol":              "sqs",
	"Endpoint":              "arn:aws:sqs:us-east-1:000000000000:q",
	"Unit":                  "Percent",
	"AdjustmentType":        "ChangeInCapacity",
	"StateValue":            "ALARM",
	"AutoScalingGroupName":  "g",
	"LaunchTemplateName":    "lt",
	"LifecycleHookName":     "h",
	"LifecycleTransition":   "autoscaling:EC2_INSTANCE_LAUNCHING",
	"LifecycleActionResult": "CONTINUE",
	"InstanceId":            "i-00000000000000001",
	"HealthStatus":          "Unhealthy",
	"DefaultResult":         "CONTINUE",
	"InstanceType":          "c5.large",
	"DashboardName":         "d",
	"Schedule":              "rate(5 minutes)",
	"Timezone":              "Europe/Berlin",
}

var likelyNumbers = map[string]int32{
	"Period":            60,
	"EvaluationPeriods": 2,
	"DatapointsToAlarm": 1,
	"MinCapacity":       1,
	"MaxCapacity":       5,
	"ScalingAdjustment": 1,
	"StorageResolution": 1,
	"MinSize":           0,
	"MaxSize":           5,
	"DesiredCapacity":   1,
	"HeartbeatTimeout":  60,
}

// fill fills a member at random. Lists are short, and depth bounds recursive types.
func fill(t *rapid.T, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth > 0 && rapid.IntRange(0, 2).Draw(t, "given") > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth-1)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(noon.Add(time.Duration(rapid.IntRange(-100, 100).Draw(t, "minutes")) * time.Minute)))
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !fillLikely(t, f.Name, v.Field(i)) {
				fill(t, v.Field(i), depth)
			}
		}
	case reflect.Slice:
		if n := rapid.IntRange(0, 2).Draw(t, "members"); depth > 0 && n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i), depth-1)
			}
		}
	case reflect.String:
		v.SetString(rapid.SampledFrom(words).Draw(t, "word"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(rapid.SampledFrom([]int{-1, 0, 1, 2, 20, 60, 300, 1 << 30}).Draw(t, "number")))
	case reflect.Float64:
		v.SetFloat(rapid.SampledFrom([]float64{-1, 0, 1, 75, 1e300}).Draw(t, "number"))
	}
}

// fillLikely usually gives a member a value that its name accepts. It reports whether the member needs no other.
func fillLikely(t *rapid.T, name string, v reflect.Value) bool {
	if word, ok := likely[name]; ok && rapid.IntRange(0, 9).Draw(t, "likely") > 0 {
		switch {
		case v.Kind() == reflect.String:
			v.SetString(word)
			return true
		case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.String:
			v.Set(reflect.ValueOf(&word))
			return true
		}
	}
	if n, ok := likelyNumbers[name]; ok && v.Type() == reflect.TypeFor[*int32]() && rapid.IntRange(0, 9).Draw(t, "likely") > 0 {
		v.Set(reflect.ValueOf(&n))
		return true
	}
	switch name {
	case "MaxRecords", "MaxResults", "MaxDatapoints", "ScanBy", "Dimensions", "Tags", "StatisticValues", "Values", "Counts", "Timestamp",
		"NextToken", "RoleARN", "EvaluationCriteria", "WarmUpConfiguration", "ActionConfiguration", "EvaluationInterval",
		"EvaluationWindow":
		return rapid.IntRange(0, 9).Draw(t, "left out") > 0
	case "Metrics", "MetricDataQueries", "OKActions", "AlarmActions", "InsufficientDataActions", "EntityMetricData", "TreatMissingData",
		"EvaluateLowSampleCountPercentile", "ExtendedStatistic", "ThresholdMetricId":
		return rapid.Bool().Draw(t, "left out")
	}
	return false
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// TestAnyInput: whatever its input, a call gets an answer or an AWS error with a message. Nothing panics, and nothing fails
// internally.
func TestAnyInput(t *testing.T) {
	now := func() time.Time { return noon }
	journal, err := sqlite.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(t.Context(), Options{
		Region:    "us-east-1",
		Account:   "000000000000",
		Data:      t.TempDir(),
		Advertise: "http://localhost:4566",
		Log:       slog.New(slog.DiscardHandler),
		Simulated: &Simulated{Now: now, NewID: state.NewID, Journal: journal},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close() //nolint:errcheck // the test is over
	p.Queues.EndWaits()
	apis := apis(p.services())
	checks := map[string]*validation.Service{}
	for _, api := range apis {
		checks[api.Name] = validation.New(api.Constraints)
	}
	answered := map[string]int{}
	once := func(t *rapid.T) {
		api := rapid.SampledFrom(apis).Draw(t, "service")
		operation := rapid.SampledFrom(api.Service.Operations()).Draw(t, "operation")
		in := reflect.New(operation.In)
		fill(t, in.Elem(), 6)
		if b := in.Elem().FieldByName("Bucket"); b.IsValid() && b.Type() == reflect.TypeFor[*string]() && b.IsNil() {
			b.Set(reflect.ValueOf(new("b"))) // it's in the path of each call
		}
		err := checks[api.Name].Check(in.Interface())
		if err == nil {
			_, err = operation.Call(context.Background(), in.Interface())
		}
		if err == nil {
			answered[operation.Name]++
		}
		var refused smithy.APIError
		if err != nil && (!errors.As(err, &refused) || refused.ErrorMessage() == "") {
			t.Fatalf("%s(%+v): %v", operation.Name, in.Elem(), err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if err := putGroup(p.State); err != nil { // each time, because calls delete it
			t.Fatal(err)
		}
		for range 100 {
			once(t)
		}
	})
	if len(answered) < 15 {
		t.Errorf("too few operations ever answered: %v", answered)
	}
}

// putGroup puts a launch template, and an instance in service in the group g, into the store.
func putGroup(store *state.Store) error {
	return store.Update(context.Background(), func(tx *state.Tx) error {
		data := &types.ResponseLaunchTemplateData{ImageId: aws.String("ami-00000000"), InstanceType: "c5.large"}
		tx.LaunchTemplates.Put(&state.LaunchTemplate{
			LaunchTemplate: types.LaunchTemplate{
				LaunchTemplateId:     aws.String("lt-1"),
				LaunchTemplateName:   aws.String("lt"),
				DefaultVersionNumber: aws.Int64(1),
				LatestVersionNumber:  aws.Int64(1),
			},
			Versions: []types.LaunchTemplateVersion{{VersionNumber: aws.Int64(1), LaunchTemplateData: data}},
		})
		tx.AutoScalingGroups.Put(&state.AutoScalingGroup{AutoScalingGroup: autoscalingtypes.AutoScalingGroup{
			AutoScalingGroupName: aws.String("g"),
			AutoScalingGroupARN:  aws.String("arn:g"),
			MinSize:              aws.Int32(0),
			MaxSize:              aws.Int32(5),
			DesiredCapacity:      aws.Int32(1),
			DefaultCooldown:      aws.Int32(300),
			HealthCheckType:      aws.String("EC2"),
			AvailabilityZones:    []string{"us-east-1a"},
			LaunchTemplate: &autoscalingtypes.LaunchTemplateSpecification{
				LaunchTemplateId:   aws.String("lt-1"),
				LaunchTemplateName: aws.String("lt"),
			},
		}})
		i := state.NewInstance(data, "us-east-1a", noon).In(types.InstanceStateNameRunning)
		i.InstanceId = aws.String("i-00000000000000001")
		i.Member = &state.Member{Group: "g", LifecycleState: autoscalingtypes.LifecycleStateInService, InServiceAt: &noon}
		tx.Instances.Put(i)
		return nil
	})
}
