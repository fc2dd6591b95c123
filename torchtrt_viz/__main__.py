"""``python -m torchtrt_viz`` is ``trtprofile``."""

from torchtrt_viz.cli import main

if __name__ == "__main__":
    main()
