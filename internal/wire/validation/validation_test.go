package validation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

const one = "1 validation error detected: "

func TestMessages(t *testing.T) {
	long := strings.Repeat("x", 513)
	for _, c := range []struct {
		name    string
		service *Service
		in      any
		code    string
		want    string // "" if the input is valid
	}{
		{"good", Logs, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("/a/b")}, "", ""},
		{"a service without a table", nil, &cloudwatchlogs.CreateLogGroupInput{}, "", ""},
		{"what is missing", Logs, &cloudwatchlogs.CreateLogGroupInput{}, "InvalidParameterException",
			one + "Value null at 'logGroupName' failed to satisfy constraint: Member must not be null"},
		{
			"too long", Logs, &cloudwatchlogs.DeleteMetricFilterInput{LogGroupName: aws.String("g"), FilterName: &long},
			"InvalidParameterException",
			one + "Value '" + long + "' at 'filterName' failed to satisfy constraint: Member must have length less than or equal to 512",
		},
		{
			"too long, in words of the service's own", Logs,
			&cloudwatchlogs.DeleteMetricFilterInput{LogGroupName: &long, FilterName: aws.String("f")}, "InvalidParameterException",
			"Invalid LogGroup or LogStream, both must have length less than or equal to 512.",
		},
		{"a pattern", Logs, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("a b")}, "InvalidParameterException",
			one + `Value 'a b' at 'logGroupName' failed to satisfy constraint: Member must satisfy regular expression pattern: ` +
				`[\.\-_/#A-Za-z0-9]+`},
		{"two at once", Logs, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("")}, "InvalidParameterException",
			"2 validation errors detected: Value '' at 'logGroupName' failed to satisfy constraint: Member must have length " +
				"greater than or equal to 1; " +
				`Value '' at 'logGroupName' failed to satisfy constraint: Member must satisfy regular expression pattern: ` +
				`[\.\-_/#A-Za-z0-9]+`},
		{"a number", Logs, &cloudwatchlogs.DescribeLogGroupsInput{Limit: aws.Int32(51)}, "InvalidParameterException",
			one + "Value '51' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 50"},
		{"an enum", Logs, &cloudwatchlogs.DescribeLogStreamsInput{OrderBy: "Size"}, "InvalidParameterException",
			one + "Value 'Size' at 'orderBy' failed to satisfy constraint: Member must satisfy enum value set: [LogStreamName, " +
				"LastEventTime]"},
		{
			"a member of a list's element", Logs, &cloudwatchlogs.PutLogEventsInput{
				LogGroupName:  aws.String("g"),
				LogStreamName: aws.String("s"),
				LogEvents:     []types.InputLogEvent{{Message: aws.String("m"), Timestamp: aws.Int64(1)}, {Message: aws.String("m")}},
			}, "InvalidParameterException",
			one + "Value null at 'logEvents.2.member.timestamp' failed to satisfy constraint: Member must not be null",
		},
		{
			"an empty list", Logs, &cloudwatchlogs.PutLogEventsInput{
				LogGroupName:  aws.String("g"),
				LogStreamName: aws.String("s"),
				LogEvents:     []types.InputLogEvent{},
			}, "InvalidParameterException",
			one + "Value '[]' at 'logEvents' failed to satisfy constraint: Member must have length greater than or equal to 1",
		},
		{
			"an element of a list", Logs, &cloudwatchlogs.FilterLogEventsInput{LogStreamNames: []string{"a", "b:c"}},
			"InvalidParameterException",
			one + "Value '[a, b:c]' at 'logStreamNames' failed to satisfy constraint: Member must satisfy constraint: [Member " +
				"must have length less than or equal to 512, " +
				"Member must have length greater than or equal to 1, Member must satisfy regular expression pattern: [^:*]*]",
		},
		{"a map's value", Logs, &cloudwatchlogs.CreateLogGroupInput{
			LogGroupName: aws.String("g"),
			Tags:         map[string]string{"k": strings.Repeat("v", 257)},
		}, "InvalidParameterException",
			one + "Value '{k=" + strings.Repeat("v", 257) +
				"}' at 'tags' failed to satisfy constraint: Map value must satisfy constraint: " +
				`[Member must have length less than or equal to 256, Member must satisfy regular expression pattern: ` +
				`^([\p{L}\p{Z}\p{N}_.:/=+\-@]*)$]`},
		{"a nested name of Query's", AutoScaling, &autoscaling.CreateAutoScalingGroupInput{
			AutoScalingGroupName: aws.String("g"),
			MinSize:              aws.Int32(1),
			MaxSize:              aws.Int32(1),
			Tags:                 []autoscalingtypes.Tag{{}},
		}, "ValidationError", one + "Value null at 'tags.1.member.key' failed to satisfy constraint: Member must not be null"},
		{"an enum that is missing", ApplicationAutoScaling, &applicationautoscaling.DescribeScalableTargetsInput{}, "ValidationException",
			one + "Value null at 'serviceNamespace' failed to satisfy constraint: Member must not be null"},
		{
			"what is too long to repeat", Logs,
			&cloudwatchlogs.DeleteMetricFilterInput{LogGroupName: aws.String("g"), FilterName: aws.String(strings.Repeat("x", 5000))},
			"InvalidParameterException", one + "Value at 'filterName' failed to satisfy constraint: Member must have length less than or equal to 512",
		},
		{
			"characters, not bytes", AutoScaling,
			&autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(strings.Repeat("ü", 255))}, "", "",
		},
		{
			"a secret", STS, &sts.AssumeRoleWithSAMLInput{
				PrincipalArn:  aws.String("arn:aws:iam::000000000000:saml-provider/p"),
				RoleArn:       aws.String("arn:aws:iam::000000000000:role/r"),
				SAMLAssertion: aws.String("abc"),
			}, "ValidationError",
			one + "Value at 'sAMLAssertion' failed to satisfy constraint: Member must have length greater than or equal to 4",
		},
		{"an alarm's state", CloudWatch, &cloudwatch.SetAlarmStateInput{
			AlarmName:   aws.String("a"),
			StateValue:  "BAD",
			StateReason: aws.String("r"),
		}, "ValidationException",
			one + "Value 'BAD' at 'stateValue' failed to satisfy constraint: Member must satisfy enum value set: [OK, ALARM, " +
				"INSUFFICIENT_DATA]"},
		{"an operation with words of its own", CloudWatch, &cloudwatch.PutMetricDataInput{}, "", ""},
	} {
		err := c.service.Check(c.in)
		var wrong *Error
		if (c.want == "") != (err == nil) || err != nil &&
			(!errors.As(err, &wrong) || wrong.ErrorCode() != c.code || wrong.ErrorMessage() != c.want) {
			t.Errorf("%s:\n got %v\nwant %s: %s", c.name, err, c.code, c.want)
		}
	}
}

func TestManyViolationsAreCut(t *testing.T) {
	in := &cloudwatchlogs.PutLogEventsInput{
		LogGroupName:  aws.String("g"),
		LogStreamName: aws.String("s"),
		LogEvents:     make([]types.InputLogEvent, 10000),
	}
	var wrong *Error
	if err := Logs.Check(in); !errors.As(err, &wrong) || len(wrong.Violations) != maxViolations {
		t.Errorf("got %v", err)
	}
}

// TestPatternsCompile compiles every pattern. In a server, a pattern is compiled only when it's first needed.
func TestPatternsCompile(t *testing.T) {
	patterns := 0
	for name, s := range all {
		for _, sh := range s.load() {
			if sh.compiled != nil {
				sh.compiled()
				patterns++
			}
		}
		if len(s.Operations()) < 10 {
			t.Errorf("the table of %s has the operations %v", name, s.Operations())
		}
	}
	if patterns < 90 {
		t.Errorf("there are %d patterns", patterns)
	}
}

func TestTranslate(t *testing.T) {
	for expr, want := range map[string]string{
		`a|b`:                          `^(?:a|b)$`,
		`[\u0020-\uD7FF]*`:             `^(?:[\x{0020}-\x{D7FF}]*)$`,
		`[ \uD800\uDC00-\uDBFF\uDFFF]`: `^(?:[ \x{10000}-\x{10FFFF}])$`,
	} {
		if got := Translate(expr); got != want {
			t.Errorf("%s: got %s, want %s", expr, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"A{\tb!:C\td", "B~\"\t1\t2\t[a-z]+", "C=\tx\ty", "D#\t-1\t0.5", "E[\t\t5\tB", "F%\t\t\tB\tC", "G*\t1", "#", "{", "A", "A\"\tx",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, table string) {
		shapes, err := parse(table)
		for name, s := range shapes {
			if err == nil && (name == "" || !strings.ContainsRune(signs, rune(s.kind))) {
				t.Errorf("%q has the shape %q of the kind %q", table, name, s.kind)
			}
		}
	})
}

func BenchmarkCheckLogEvents(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := &cloudwatchlogs.PutLogEventsInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("s")}
			for range n {
				in.LogEvents = append(in.LogEvents, types.InputLogEvent{Message: aws.String("a line of text"), Timestamp: aws.Int64(1)})
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := Logs.Check(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
