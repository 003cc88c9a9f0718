package volumesize

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// TestSizes: a volume has what its type has, and nothing is made of what it hasn't.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		in   Size
		want Size   // of what is made
		code string // or the error's
		text string // which it contains
	}{
		{in: Size{GiB: aws.Int32(10)}, want: Size{"gp2", aws.Int32(10), aws.Int32(100), nil}},
		{in: Size{"gp2", aws.Int32(16384), nil, nil}, want: Size{"gp2", aws.Int32(16384), aws.Int32(16000), nil}},
		{in: Size{"gp3", aws.Int32(10), nil, nil}, want: Size{"gp3", aws.Int32(10), aws.Int32(3000), aws.Int32(125)}},
		{in: Size{"gp3", aws.Int32(10), aws.Int32(4000), aws.Int32(500)}, want: Size{"gp3", aws.Int32(10), aws.Int32(4000), aws.Int32(500)}},
		{in: Size{"io2", aws.Int32(4), aws.Int32(100), nil}, want: Size{"io2", aws.Int32(4), aws.Int32(100), nil}},
		{in: Size{"st1", aws.Int32(125), nil, nil}, want: Size{"st1", aws.Int32(125), nil, nil}},
		{in: Size{}, code: "MissingParameter", text: "size/snapshot"},
		{in: Size{"floppy", aws.Int32(1), nil, nil}, code: "UnknownVolumeType", text: "'floppy'"},
		{in: Size{"st1", aws.Int32(124), nil, nil}, code: "InvalidParameterValue", text: "Volume of 124GiB is too small for volume type st1; minimum is 125GiB."},
		{in: Size{"standard", aws.Int32(1025), nil, nil}, code: "InvalidParameterValue", text: "maximum is 1024GiB."},
		{in: Size{"gp2", aws.Int32(10), aws.Int32(100), nil}, code: "InvalidParameterCombination", text: "The parameter iops is not supported for gp2 volumes."},
		{in: Size{"gp2", aws.Int32(10), nil, aws.Int32(125)}, code: "InvalidParameterCombination", text: "throughput is not supported"},
		{in: Size{"io1", aws.Int32(10), nil, nil}, code: "MissingParameter", text: "iops"},
		{in: Size{"io1", aws.Int32(100), aws.Int32(5001), nil}, code: "InvalidParameterValue", text: "ratio of 50.0 is too high; maximum is 50"},
		{in: Size{"gp3", aws.Int32(10), aws.Int32(2999), nil}, code: "InvalidParameterValue", text: "Volume iops of 2999 is too low; minimum is 3000."},
		{in: Size{"gp3", aws.Int32(10), nil, aws.Int32(2001)}, code: "InvalidParameterValue", text: "Throughput of 2001 MiB/s"},
	} {
		got, err := c.in.Checked()
		var refusal *Refusal
		if errors.As(err, &refusal); (refusal == nil) != (c.code == "") || refusal != nil && (refusal.Code != c.code || !strings.Contains(refusal.Text, c.text)) {
			t.Errorf("%+v: %v, want %s: %s", c.in, err, c.code, c.text)
		}
		isSame := got.Type == c.want.Type && aws.ToInt32(got.GiB) == aws.ToInt32(c.want.GiB) &&
			aws.ToInt32(got.IOPS) == aws.ToInt32(c.want.IOPS) && aws.ToInt32(got.Throughput) == aws.ToInt32(c.want.Throughput)
		if err == nil && !isSame {
			t.Errorf("%+v is %+v", c.in, got)
		}
	}
}
