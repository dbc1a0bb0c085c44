"""Rich results: what the SDKs show of an object beyond its text.  An IPython extension, loaded by
ipython_kernel_config.py.

Whoever uses neither pandas, matplotlib nor PIL pays for none of them: formatters know their types by name, PIL is
changed when it is imported, and what makes a chart is imported with the first figure."""

import sys

from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode

from . import images, pager, values


class DataFormatter(BaseFormatter):
    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = dict


class ChartFormatter(BaseFormatter):
    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = dict

    def lookup(self, obj):
        """A type that is registered would be lost: the inline backend takes figures out of every formatter."""
        matplotlib = sys.modules.get("matplotlib.figure")
        if matplotlib is not None and isinstance(obj, matplotlib.Figure):
            return figure_chart
        return super().lookup(obj)


def figure_chart(figure):
    from . import charts
    return charts.figure_chart(figure)


def load_ipython_extension(shell):
    display = shell.display_formatter

    data = display.formatters["e2b/data"] = DataFormatter(parent=display)
    data.for_type_by_name("pandas.core.frame", "DataFrame", values.frame_data)
    data.for_type_by_name("pandas", "DataFrame", values.frame_data)     # since pandas 3

    display.formatters["e2b/chart"] = ChartFormatter(parent=display)

    json = display.formatters["application/json"]
    json.for_type(list, values.json_value)
    json.for_type(dict, values.json_value)

    images.watch()
    pager.watch(shell)
