package mesh

import (
	"testing"
	"time"
)

func TestAPeerIsAskedOneQuestionAtATime(t *testing.T) {
	now := time.Unix(0, 0)
	q := newAskQueue()
	for range 100 {
		q.add("p", now)
	}
	q.add("q", now)
	if first, _ := q.take(); first != "p" {
		t.Errorf("asked %s first", first)
	}
	for range 100 {
		q.add("p", now) // the question under way may be too early to bring what this is about
	}
	if second, _ := q.take(); second != "q" {
		t.Errorf("asked %s second", second)
	}
	if p, ok := q.take(); ok {
		t.Errorf("asked %s beside a question under way", p)
	}
	q.ended("p", false, now)
	if third, _ := q.take(); third != "p" {
		t.Errorf("asked %s third", third)
	}
	q.ended("p", false, now)
	q.ended("q", false, now)
	if _, ok := q.take(); ok || len(q.peers) > 0 {
		t.Errorf("%d peers are left", len(q.peers))
	}
}

func TestSilentPeersAreLeftAlone(t *testing.T) {
	now := time.Unix(0, 0)
	q := newAskQueue()
	questions := 0
	for end := now.Add(10 * time.Minute); now.Before(end); now = now.Add(time.Second) {
		q.add("silent", now)
		if p, ok := q.take(); ok {
			questions++
			q.add(p, now)
			q.ended(p, true, now)
		}
	}
	if questions < 10 || questions > 16 {
		t.Errorf("%d questions in ten minutes", questions)
	}
	now = now.Add(lastReask)
	q.add("silent", now)
	q.take()
	q.ended("silent", false, now)
	if len(q.peers) > 0 {
		t.Error("an answer was not taken as one")
	}
}
