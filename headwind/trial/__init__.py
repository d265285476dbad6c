"""One trial on a testbed, from clean state to an outcome; a lane runs them one after another."""
