"""Experimental functions of the platform."""
