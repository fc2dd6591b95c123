"""Profiles of serving engines: many processes, one session, without stalling the engine or losing data.

One process::

    from torchtrt_viz.serving import ProfileConfig, start_profile, stop_profile, wait_for_profile_artifacts

    start_profile(ProfileConfig("profiles", active=20))     # on the engine's thread
    for batch in work:
        with engine_step():
            engine.step(batch)
    wait_for_profile_artifacts()

An engine of several processes passes its messages to a `ProfileCoordinator` (`PipeHub`, `StoreHub`) on one
side and a `ProfileWorker` (`PipeWorker`, `StoreWorker`) on the other. `profile_routes` offers start, stop and
status over HTTP, `add_profile_arguments` as command-line flags, and `recover` finishes what a killed process
left behind.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
