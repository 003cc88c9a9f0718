package group

// Refresh is how far a group is whose instances are being replaced by new ones. The page that it follows is
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/instance-refresh-overview.html
type Refresh struct {
	Desired                int // capacity of the group
	MinHealthy, MaxHealthy int // percentages of it
	Healthy                int // instances in service that have warmed up, old and new
	Old                    int // those of them that are still to go
}

// Surplus is how many instances more than desired there are to be, so that the old ones which do not go now can when these are
// there.
func (r Refresh) Surplus() int {
	if r.MaxHealthy <= 100 {
		return 0
	}
	return min(r.Old-r.Leave(), max(1, r.Desired*(r.MaxHealthy-100)/100))
}

// Leave is how many old instances go now. Where there is to be no surplus, one at a time goes in any case.
func (r Refresh) Leave() int {
	keep := (r.Desired*r.MinHealthy + 99) / 100
	if r.MaxHealthy <= 100 {
		keep = min(keep, r.Desired-1)
	}
	return min(r.Old, max(0, r.Healthy-keep))
}
