//go:build integration

package smoke_test

import "github.com/penstock-project/penstock/test/framework/widgets"

// profile: a user writes a profile in CEL for a kind of another operator. Its plan starts when the
// maintenance window opens, and waits until that operator has finished.
func profile(s scenario) {
	s.Create(widgets.Definition)
	s.Create(widgets.One(s.name))
	s.Create(widgets.Profile(s.name))
	s.Condition("configprofiledef/large-widgets", "AccessGranted", "True")
	s.Says(s.JSON("configprofile/large-widgets"), `"state":"Inactive"`, "How large they are.")
	size := func(want string) {
		s.t.Helper()
		s.Is("widget/one", ".spec.size", want)
	}

	s.Create(`{apiVersion: hco.kubevirt.io/v1alpha1, kind: ConfigurationPlan, metadata: {name: widgets},
		spec: {profile: large-widgets, onConflict: Take, options: {values: {size: 5}},
		window: {schedule: "0 0 29 2 *", timeZone: Europe/Berlin, duration: 1h}}}`)
	s.Becomes("configplan/widgets", ".status.phase", "ReviewRequired")
	s.Says(s.Field("configplan/widgets", ".status.diff"), "+  size: 5")
	s.types(0, "plan approve widgets")
	s.Becomes("configplan/widgets", ".status.phase", "Scheduled")
	s.Says(s.Field("configplan/widgets", ".status.message"), "it begins when its window opens at 20", "-02-29 00:00 CET, Europe/Berlin)")
	size("1")

	// A changed window changes the plan's hash: the plan needs another review.
	s.Patch("configplan/widgets", `{"spec":{"window":{"schedule":"* * * * *"}}}`)
	s.Becomes("configplan/widgets", ".status.phase", "ReviewRequired")
	s.types(0, "plan approve widgets")
	s.Mentions("configplan/widgets", ".status.items[0].message", "the widget grows")
	size("5")
	s.PatchStatus("widget/one", `{"status":{"ready":2}}`)
	s.Mentions("configplan/widgets", ".status.items[0].message", "2 are ready")
	s.PatchStatus("widget/one", `{"status":{"ready":5}}`)
	s.Becomes("configplan/widgets", ".status.phase", "Completed")
}
