package nodelink

import (
	"context"
	"slices"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// sendVolumes tells the node to delete volumes that it has kept, until it says that they are gone. A node that has just connected is told of all.
func (s *session) sendVolumes(ctx context.Context, v *state.View) error {
	m := &acs.PintleDeleteVolumes{}
	for row := range v.Volumes.By(state.VolumesToDelete, s.instance) {
		if !s.doomed[*row.VolumeId] {
			m.VolumeIDs = append(m.VolumeIDs, *row.VolumeId)
		}
	}
	if len(m.VolumeIDs) == 0 {
		return nil
	}
	slices.Sort(m.VolumeIDs)
	for _, id := range m.VolumeIDs {
		s.doomed[id] = true
	}
	return s.send(ctx, m)
}

// forgetVolumes forgets volumes that the node has deleted, as it was told to.
func (s *session) forgetVolumes(ctx context.Context, m *acs.PintleVolumesDeleted) error {
	return s.link.store.Update(ctx, func(tx *state.Tx) error {
		for _, id := range m.VolumeIDs {
			row := tx.Volumes.Get(id)
			if row != nil && row.Managed != nil && row.Managed.Deleted && row.Managed.InstanceArn == s.instance {
				tx.Volumes.Delete(id)
			}
		}
		return nil
	})
}
