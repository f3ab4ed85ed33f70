"""What models are built from: parts with parameters, a forward and the backward beneath it. Pure functions of arrays
are in core/ops; how parts are put together is in core/model.py."""
