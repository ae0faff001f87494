"""Teams: members, group restarts and the roll-up, decided as purely as everything else."""
