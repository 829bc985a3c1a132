package server

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-project/penstock/pkg/server/database"
	servermetrics "github.com/penstock-project/penstock/pkg/server/metrics"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/pkg/server/storehealth"
)

func (s *Server) measured() (prometheus.Gatherer, error) {
	err := s.process.Register(servermetrics.Process{
		Leading:    s.term.Leading,
		Degraded:   func() bool { return s.decision.Degraded != "" || s.database.Down() != nil },
		Full:       s.health.OverQuota,
		Unreadable: func() map[string]int { return storehealth.UnreadableByKind(s.unreadable, database.Prefix) },
		Volume:     s.health.Volume,
		Refusals:   s.shares.Refusals,
		Expiries:   s.expiries,
		Skew:       s.host.ClockSkew,
	})
	if err != nil {
		return nil, fmt.Errorf("registering the metrics of the server: %w", err)
	}
	gatherers := servermetrics.FirstWins{s.process, s.term}
	if embedded := s.database.Embedded; embedded != nil {
		gatherers = append(gatherers, embedded)
	}
	return gatherers, nil
}

func (s *Server) expiries() map[string]time.Time {
	ends := map[string]time.Time{}
	if cert := s.generic.SecureServingInfo.Cert; cert != nil {
		shown, _ := cert.CurrentCertKeyContent()
		ends["serving"] = registration.Expiry(shown)
	}
	if authority := s.trust.Authority(); authority != nil {
		ends["authority"] = registration.Expiry(authority.PEM)
	}
	return ends
}
