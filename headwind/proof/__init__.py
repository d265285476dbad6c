"""Proof: was the network of a trial the requested one?"""
