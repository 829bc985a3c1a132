package extension

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
)

// longestGrant bounds what a condition has of a ClusterRole, in bytes: who needs more needs a
// file.
const longestGrant = 2800

// grant tells a ClusterRole with the rights that installing content takes, for an administrator
// to read and apply. It is empty when it is too long for a condition.
func grant(extension, who string, phases []source.Phase) string {
	role := rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "install-" + extension},
		Rules:      grants(phases),
	}
	content, err := json.Marshal(role)
	if err != nil || len(content) > longestGrant {
		return ""
	}
	flag := "--user=" + who
	if account, is := strings.CutPrefix(who, "system:serviceaccount:"); is {
		flag = "--serviceaccount=" + account
	}
	flag = quoted(flag)
	return fmt.Sprintf("to grant the necessary rights, if you agree:\nkubectl apply -f - <<'EOF'\n%s\nEOF\nkubectl create clusterrolebinding %s --clusterrole=%s %s", content, role.Name, role.Name, flag)
}

// plain are words that a shell takes as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:=@,+-]*$`)

// quoted is a word for a shell: names of users may have anything in them, and an administrator
// copies it.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// grants are rules for all objects, by name, and for what roles among them grant. The names of
// resources are guessed of kinds, which is right for those of Kubernetes.
func grants(phases []source.Phase) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{olmv1alpha1.SchemeGroupVersion.Group}, Resources: []string{"clusterextensionrevisions"}, Verbs: []string{"create"}}}
	names := map[schema.GroupResource][]string{}
	var order []schema.GroupResource
	var handed []rbacv1.PolicyRule
	for _, phase := range phases {
		for _, object := range phase.Objects {
			resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: object.ID.Group, Version: object.Version, Kind: object.ID.Kind})
			key := resource.GroupResource()
			if names[key] == nil {
				order = append(order, key)
			}
			if !slices.Contains(names[key], object.Name) {
				names[key] = append(names[key], object.Name)
			}
			handed = append(handed, rulesIn(object)...)
		}
	}
	for _, key := range order {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{key.Group}, Resources: []string{key.Resource}, ResourceNames: names[key], Verbs: []string{"create", "patch", "delete"}})
	}
	return append(rules, handed...)
}

// rulesIn are what a role grants: only who has that may write it.
func rulesIn(object manifest.Object) []rbacv1.PolicyRule {
	if object.ID.Group != rbacv1.GroupName || !strings.HasSuffix(object.ID.Kind, "Role") {
		return nil
	}
	var role struct {
		Rules []rbacv1.PolicyRule `json:"rules"`
	}
	if err := json.Unmarshal(object.JSON, &role); err != nil {
		return nil
	}
	return role.Rules
}
