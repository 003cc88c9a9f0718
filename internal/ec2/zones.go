package ec2

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// zoneLetters names the zones that we list for the region. Groups and machines may use others: here a zone is just a
// name by which machines are spread.
const zoneLetters = "abc"

// zones returns the region's Availability Zones.
func (s *Service) zones() (all []types.AvailabilityZone) {
	for i, letter := range zoneLetters {
		all = append(all, types.AvailabilityZone{
			ZoneName:           aws.String(s.opts.Region + string(letter)),
			ZoneId:             aws.String(shortRegion(s.opts.Region) + "-az" + string(rune('1'+i))),
			ZoneType:           aws.String("availability-zone"),
			RegionName:         &s.opts.Region,
			NetworkBorderGroup: &s.opts.Region,
			GroupName:          aws.String(s.opts.Region + "-zg-1"),
			State:              types.AvailabilityZoneStateAvailable,
			OptInStatus:        types.AvailabilityZoneOptInStatusOptInNotRequired,
			Messages:           []types.AvailabilityZoneMessage{},
		})
	}
	return all
}

// shortRegion abbreviates a region as the ids of its zones do, such as use1 and apse2:
// https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-availability-zones.html
func shortRegion(region string) string {
	short := strings.NewReplacer("north", "n", "south", "s", "east", "e", "west", "w", "central", "c", "gov", "g")
	return strings.ReplaceAll(short.Replace(region), "-", "")
}

// zoneFields holds the filters of API_DescribeAvailabilityZones.
var zoneFields = fields[types.AvailabilityZone]{
	"group-name":    func(z *types.AvailabilityZone) []string { return optional(z.GroupName) },
	"opt-in-status": func(z *types.AvailabilityZone) []string { return []string{string(z.OptInStatus)} },
	"region-name":   func(z *types.AvailabilityZone) []string { return optional(z.RegionName) },
	"state":         func(z *types.AvailabilityZone) []string { return []string{string(z.State)} },
	"zone-id":       func(z *types.AvailabilityZone) []string { return optional(z.ZoneId) },
	"zone-name":     func(z *types.AvailabilityZone) []string { return optional(z.ZoneName) },
	"zone-type":     func(z *types.AvailabilityZone) []string { return optional(z.ZoneType) },
}

// DescribeAvailabilityZones lists all of the region's zones, or some by name or id.
func (s *Service) DescribeAvailabilityZones(_ context.Context,
	in *ec2.DescribeAvailabilityZonesInput) (*ec2.DescribeAvailabilityZonesOutput, error) {
	match, err := matcher(in.Filters, zoneFields, nil)
	if err != nil {
		return nil, err
	}
	all := s.zones()
	for _, name := range slices.Concat(in.ZoneNames, in.ZoneIds) {
		if !slices.ContainsFunc(all, func(z types.AvailabilityZone) bool { return *z.ZoneName == name || *z.ZoneId == name }) {
			return nil, refuse("InvalidParameterValue", "Invalid availability zone: [%s]", name)
		}
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(z types.AvailabilityZone) bool {
		return !match(&z) || len(in.ZoneNames) > 0 && !slices.Contains(in.ZoneNames, *z.ZoneName) ||
			len(in.ZoneIds) > 0 && !slices.Contains(in.ZoneIds, *z.ZoneId)
	})
	return &ec2.DescribeAvailabilityZonesOutput{AvailabilityZones: all}, nil
}

// regionFields holds the filters of API_DescribeRegions.
var regionFields = fields[types.Region]{
	"endpoint":      func(r *types.Region) []string { return optional(r.Endpoint) },
	"opt-in-status": func(r *types.Region) []string { return optional(r.OptInStatus) },
	"region-name":   func(r *types.Region) []string { return optional(r.RegionName) },
}

// DescribeRegions lists the only region.
func (s *Service) DescribeRegions(_ context.Context, in *ec2.DescribeRegionsInput) (*ec2.DescribeRegionsOutput, error) {
	match, err := matcher(in.Filters, regionFields, nil)
	if err != nil {
		return nil, err
	}
	for _, name := range in.RegionNames {
		if name != s.opts.Region {
			return nil, refuse("InvalidParameterValue", "Invalid region: [%s]", name)
		}
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	all := []types.Region{{
		RegionName:  &s.opts.Region,
		Endpoint:    aws.String("ec2." + s.opts.Region + ".amazonaws.com"),
		OptInStatus: aws.String("opt-in-not-required"),
	}}
	return &ec2.DescribeRegionsOutput{Regions: slices.DeleteFunc(all, func(r types.Region) bool { return !match(&r) })}, nil
}
