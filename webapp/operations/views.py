"""Every screen of operations, on its one blueprint."""

from webapp.operations import crew, decisions, deploy, destinations, failed, instances, jobs, leases, overview, processes, resting
from webapp.operations.blueprint import blueprint

PARTS = (crew, decisions, deploy, destinations, failed, instances, jobs, leases, overview, processes, resting)
"""Importing them registered their routes."""

__all__ = ["PARTS", "blueprint"]
