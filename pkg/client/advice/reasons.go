package advice

// step is what follows from a reason.
type step struct {
	who Who
	do  string
	// command with {extension}, {revision} and {plan}; empty for none, or for the one that
	// the message of the program ends in.
	command string
}

const (
	rollBack = "kubectl penstock rollback {extension}"
	correct  = "correct that in the next revision, or roll back"
)

// revisionSteps are the reasons of revisions: of conditions, and of what fails in phases.
func revisionSteps() map[string]step {
	return map[string]step{
		// Nothing is wrong.
		"RolledOut":  {who: Nobody},
		"NoFailure":  {who: Nobody},
		"NotStalled": {who: Nobody},
		"Archived":   {who: Nobody},
		"Superseded": {who: Nobody, do: "A newer revision takes its place"},
		"Released":   {who: Nobody},
		"Requested":  {who: Nobody},
		"Imported":   {who: Nobody},

		// It continues by itself.
		"RollingOut":      {who: Nobody, do: "It continues by itself"},
		"Repairing":       {who: Nobody, do: "It continues by itself"},
		"NotYet":          {who: Nobody, do: "It continues by itself"},
		"Soaking":         {who: Nobody, do: "It succeeds by itself when that time is over"},
		"TearingDown":     {who: Nobody, do: "It continues by itself"},
		"Waiting":         {who: Nobody, do: "It continues by itself when the wait is over"},
		"WaitingForLevel": {who: Nobody, do: "It continues by itself when the objects of the earlier level are there"},
		"HandedToHelm":    {who: Nobody, do: "Helm applies what it asks for"},
		"HandingToHelm":   {who: Nobody, do: "It continues by itself"},
		"Unknown":         {who: Nobody, do: "It is known when the cluster answers"},

		// It waits for a person.
		"Paused":                   {who: Author, do: "resume it", command: "kubectl penstock resume {revision}"},
		"Frozen":                   {who: Administrator, do: "end the freeze: delete the ConfigMap penstock-freeze in the namespace of Penstock", command: "kubectl penstock unfreeze"},
		"Held":                     {who: Author, do: "change the owner, so that it rolls out something else, or release the hold"},
		"BudgetExceeded":           {who: Author, do: "read what would be deleted, and acknowledge it if that is meant"},
		"InstancesExist":           {who: Author, do: "save or delete the instances, and allow the deletion of their definition if that is meant"},
		"NotEmpty":                 {who: Author, do: "save or move what would be deleted with it, and acknowledge it if that is meant"},
		"Collision":                {who: Author, do: "have the next revision take the object over with collisionProtection, or leave it out of the next revision; delete the object only if it holds no data"},
		"Contested":                {who: Author, do: "choose what the message offers; when it offers nothing, stop the other writer, or leave the field to it: list the field in yield in the next revision"},
		"ApplyRejected":            {who: Author, do: "make the next revision with a manifest that the cluster accepts, or have the policy or right that the message names changed"},
		"ProbeFailed":              {who: Author, do: correct, command: rollBack},
		"Unavailable":              {who: Author, do: correct, command: rollBack},
		"ProgressDeadlineExceeded": {who: Author, do: correct, command: rollBack},
		"Invalid":                  {who: Author, do: "make the next revision without that"},
		"InvalidManifests":         {who: Author, do: "make the next revision without that"},
		"KindNotServed":            {who: Author, do: "install the software that serves the kind, or leave the object out of the next revision; it continues by itself when the kind is served"},
		"KindDefinedLater":         {who: Author, do: "make the next revision with the CustomResourceDefinition in an earlier phase, or at an earlier install level, than the objects of its kind"},
		"Terminating":              {who: Administrator, do: "find out what keeps the object from being deleted, often a finalizer of a controller that is gone; it continues by itself when the object is gone"},
		"TargetUnreachable":        {who: Administrator, do: "make the cluster answer; Penstock tries again by itself"},
		"TargetUnavailable":        {who: Administrator, do: "make the cluster that the revision names usable, and the Secret with its kubeconfig; Penstock tries again by itself"},
		"NotWatchable":             {who: Administrator, do: "grant penstock-engine the rights to list and watch the kind; Penstock tries again by itself"},
		"ContentUnreadable":        {who: Operator, do: "restore the store from a snapshot, or make the next revision with the manifests inline"},
		"Unreadable":               {who: Operator, do: "restore the store from a snapshot, or delete the record (runbook PenstockStoreUnreadable)"},
		"PassFailed":               {who: Operator, do: "read the log of the replica that leads; Penstock tries again by itself"},
		"Pending":                  {who: Operator, do: "make sure that a replica leads, if this lasts", command: "kubectl penstock check"},

		// No rollback came by itself.
		"NoEarlierSuccess": {who: Author, do: "correct that in the next revision: no earlier one has succeeded"},
		"IsRollback":       {who: Author, do: "make the next revision: this one is a rollback itself"},
		"Overtaken":        {who: Author, do: "make the next revision, or roll back to one that is still there", command: rollBack},
		"RollbackRefused":  {who: Author, do: "do what the message asks; Penstock tries the rollback again by itself"},

		// A target of a plan.
		"Drifted": {who: Planner, do: "have the plan computed anew, and review it"},
		"Stale":   {who: Planner, do: "have the plan computed anew, and review it"},
	}
}

const (
	anew    = "have the plan computed anew (retry), and review it"
	approve = "kubectl penstock plan approve {plan}"
	run     = "kubectl penstock plan run {plan}" // computes it anew, shows it and asks
)

// planSteps are the reasons of plans.
func planSteps() map[string]step {
	return map[string]step{
		"Completed":            {who: Nobody},
		"Restored":             {who: Nobody},
		"PrerequisitesMet":     {who: Nobody},
		"NoDrift":              {who: Nobody},
		"TargetsHealthy":       {who: Nobody},
		"TargetUnhealthy":      {who: Administrator, do: "repair what the operator of the target reports; the plan notices by itself"},
		"UpToDate":             {who: Nobody},
		"Ignored":              {who: Nobody, do: "It does nothing before its action is DryRun or Apply"},
		"Pending":              {who: Nobody, do: "It is computed soon; if this lasts, make sure that a replica of Penstock leads"},
		"NotLookedAtYet":       {who: Nobody, do: "It is looked at soon; if this lasts, make sure that a replica of Penstock leads"},
		"Drafting":             {who: Nobody, do: "It can be reviewed when it is computed"},
		"InProgress":           {who: Nobody, do: "It continues by itself"},
		"WaitingForWindow":     {who: Nobody, do: "It continues by itself when the window opens"},
		"WaitingForProfile":    {who: Nobody, do: "It continues by itself when the plans that the message names are Completed"},
		"Frozen":               revisionSteps()["Frozen"],
		"ReviewRequired":       {who: Approver, do: "review and approve it", command: approve},
		"MissingDependency":    {who: Administrator, do: "install, or remove, what the message names; the plan notices by itself"},
		"FieldConflict":        {who: Planner, do: "settle with the owners of these fields, or set onConflict to Take; of two plans, change or ignore one"},
		"ProfileLocked":        {who: Planner, do: "wait for the plan that has the profile, or take the profile from it"},
		"ApproverLacksRights":  {who: Approver, do: "have it computed anew (retry), and approved by somebody with the rights to do what it does", command: run},
		"ItemFailed":           {who: Planner, do: "see why the item failed, and " + anew + "; or undo the run", command: run},
		"CompletedWithErrors":  {who: Planner, do: "see which items failed, and " + anew + "; or undo the run", command: run},
		"PlanStale":            {who: Planner, do: anew, command: run},
		"PlanRefused":          {who: Planner, do: "change what the message names, and " + anew, command: run},
		"ConfigurationDrifted": {who: Planner, do: "settle with the person or controller that changed it, or " + anew, command: run},
		"ApprovalExpired":      {who: Planner, do: anew, command: run},
		"LogicChanged":         {who: Planner, do: anew + ": it would be different today", command: run},
		"Unreadable":           {who: Operator, do: "restore the store from a snapshot"},
	}
}
