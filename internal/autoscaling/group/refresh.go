package group

// Refresh is the progress of an instance refresh. It follows
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/instance-refresh-overview.html
type Refresh struct {
	Desired                int // capacity of the group
	MinHealthy, MaxHealthy int // percentages of Desired
	Healthy                int // warmed-up instances in service, old and new
	Old                    int // healthy instances that still have to go
}

// Surplus returns how many instances above the desired capacity the group needs, so that the remaining old ones can leave
// once the new ones are there.
func (r Refresh) Surplus() int {
	if r.MaxHealthy <= 100 {
		return 0
	}
	return min(r.Old-r.Leave(), max(1, r.Desired*(r.MaxHealthy-100)/100))
}

// Leave returns how many old instances go now. If no surplus is allowed, one may go even if fewer than MinHealthy remain.
func (r Refresh) Leave() int {
	keep := (r.Desired*r.MinHealthy + 99) / 100
	if r.MaxHealthy <= 100 {
		keep = min(keep, r.Desired-1)
	}
	return min(r.Old, max(0, r.Healthy-keep))
}
