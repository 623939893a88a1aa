/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Draws a report from the object in #data (page.c), with dygraphs if the build
 * has it. Text that comes from files gets into the page only by textContent, or
 * through escape(). Nothing is loaded.
 */
"use strict";
(function () {
    var COLORS = ["#3066be", "#d1495b", "#2e933c", "#b7791f", "#7b4fa3",
                  "#008b8b", "#6b6b6b", "#c2410c"];
    var runs = JSON.parse(document.getElementById("data").textContent);
    var page = document.getElementById("page");
    var graphs = [];

    /* ---- small helpers ---------------------------------------------------- */

    /* A new element with [text], appended to [parent]. */
    function add(parent, tag, text, attributes) {
        var node = document.createElement(tag);
        if (text !== undefined && text !== null)
            node.textContent = text;
        Object.keys(attributes || {}).forEach(function (key) {
            node.setAttribute(key, attributes[key]);
        });
        parent.appendChild(node);
        return node;
    }

    function escape(text) {
        return String(text).replace(/[&<>"']/g, function (c) {
            return "&#" + c.charCodeAt(0) + ";";
        });
    }

    function short(value) {
        if (value === null || value === undefined)
            return "-";
        return typeof value === "number" ? String(+value.toPrecision(5))
                                         : String(value);
    }

    function duration(seconds) {
        if (seconds < 120)
            return seconds.toPrecision(3) + " s";
        if (seconds < 7200)
            return (seconds / 60).toFixed(1) + " min";
        return (seconds / 3600).toFixed(1) + " h";
    }

    function table(parent, id, head, rows) {
        var scroll = add(parent, "div", null, {"class": "scroll"});
        var out = add(scroll, "table", null, {id: id});
        var top = add(out, "tr");
        head.forEach(function (text) { add(top, "th", text); });
        rows.forEach(function (cells) {
            var line = add(out, "tr");
            cells.forEach(function (text) { add(line, "td", text); });
        });
        return out;
    }

    /* Names by which the reader tells the runs apart. */
    function nameRuns() {
        var seen = {};
        runs.forEach(function (run) {
            var set = run.about.settings || {};
            var last = run.about.dir.replace(/\/+$/, "").split("/").pop();
            run.name = runs.length > 1 ? last : set["run.name"] || last;
            if (seen["=" + run.name])
                run.name = run.about.dir;
            seen["=" + run.name] = true;
        });
    }

    /* ---- plots ------------------------------------------------------------ */

    /* Rows [step, value, ...] of all [lines] {name, curve}. With bars a value
     * is [least, mean, most]. */
    function merge(lines, bars) {
        var at = {}, steps = [];
        lines.forEach(function (line, k) {
            line.curve.x.forEach(function (x, i) {
                var y = line.curve.y[i], low = line.curve.low;
                if (!at[x]) {
                    at[x] = [x];
                    lines.forEach(function () { at[x].push(null); });
                    steps.push(x);
                }
                at[x][k + 1] = !bars ? y :
                    low ? [low[i], y, line.curve.high[i]] : [y, y, y];
            });
        });
        steps.sort(function (a, b) { return a - b; });
        return steps.map(function (x) { return at[x]; });
    }

    /* dygraphs puts what this returns into the page as HTML. */
    function legend(data) {
        var out = data.x === undefined ? "" :
            "<span>step " + escape(data.xHTML) + "</span>";
        data.series.forEach(function (line) {
            if (!line.isVisible || (data.x !== undefined && !line.yHTML))
                return;
            out += "<span style=\"color:" + line.color + "\">" +
                escape(line.label) +
                (line.yHTML ? ": <b>" + escape(line.yHTML) + "</b>" : "") +
                "</span>";
        });
        return out;
    }

    /* Labels must differ, and dygraphs takes them as keys. */
    function labelsOf(lines) {
        var seen = {};
        return ["step"].concat(lines.map(function (line) {
            var label = line.name;
            while (seen["=" + label])
                label += "'";
            seen["=" + label] = true;
            return label;
        }));
    }

    /* A plot of [lines] with the id "plot-[id]"; nothing if all are empty. */
    function plot(id, title, lines, options) {
        var more = options || {}, bars = !more.stacked, box, keys, settings;
        lines = lines.filter(function (line) {
            return line.curve && line.curve.x.length > 0;
        });
        if (lines.length === 0 || typeof Dygraph === "undefined")
            return;
        add(page, "h2", title);
        keys = add(page, "div", null, {"class": "legend"});
        box = add(page, "div", null, {"class": "plot", id: "plot-" + id});
        settings = {
            labels: labelsOf(lines),
            labelsDiv: keys,
            legend: "always",
            legendFormatter: legend,
            colors: lines.map(function (line, i) {
                return COLORS[i % COLORS.length];
            }),
            customBars: bars,
            fillAlpha: bars ? 0.15 : 0.6,
            connectSeparatedPoints: true,
            stackedGraph: !bars,
            xlabel: "step",
            ylabel: more.unit || "",
            logscale: false,
            strokeWidth: 1.4,
            drawPoints: lines.some(function (line) {
                return line.curve.x.length < 60;
            }),
            axes: {y: {axisLabelWidth: 76, axisLabelFormatter: short,
                       valueFormatter: short}},
            animatedZooms: false
        };
        if (more.zero && bars)
            settings.includeZero = true;
        graphs.push({graph: new Dygraph(box, merge(lines, bars), settings),
                     log: !!more.log});
    }

    /* The curves called [name] of all runs, as lines with [label]. */
    function lines(name, label) {
        return runs.map(function (run) {
            return {name: (runs.length > 1 ? run.name + " " : "") + label,
                    curve: run.curves[name]};
        });
    }

    /* All names of curves, in the order in which they come. */
    function namesOf() {
        var seen = {}, out = [];
        runs.forEach(function (run) {
            Object.keys(run.curves).forEach(function (name) {
                if (!seen["=" + name])
                    out.push(name);
                seen["=" + name] = true;
            });
        });
        return out;
    }

    /* A curve made of others with the same steps: combine(i) is its value. */
    function combined(base, combine) {
        var out = {x: [], y: []};
        base.x.forEach(function (x, i) {
            var y = combine(i);
            if (isFinite(y)) {
                out.x.push(x);
                out.y.push(y);
            }
        });
        return out;
    }

    /* The value of [curve] at step [x], as curves may lack some steps. */
    function reader(curve) {
        var at = {};
        (curve ? curve.x : []).forEach(function (x, i) {
            at[x] = curve.y[i];
        });
        return function (x) { return at[x] === undefined ? 0 : at[x]; };
    }

    var PARTS = [["data_s", "waiting for data"], ["forward_s", "forward"],
                 ["backward_s", "backward"],
                 ["comm_exposed_s", "exposed communication"]];

    function stack(run, index) {
        var total = run.curves.step_s, parts, values;
        if (!total)
            return;
        values = PARTS.map(function (part) {
            return reader(run.curves[part[0]]);
        });
        parts = PARTS.map(function (part, k) {
            return {name: part[1], curve: combined(total, function (i) {
                return values[k](total.x[i]);
            })};
        });
        parts.push({name: "update and the rest",
                    curve: combined(total, function (i) {
                        var rest = total.y[i];
                        values.forEach(function (value) {
                            rest -= value(total.x[i]);
                        });
                        return Math.max(rest, 0);
                    })});
        plot("time" + (index || ""), "Time of a step" +
             (runs.length > 1 ? ": " + run.name : ""), parts.reverse(),
             {stacked: true, unit: "s"});
    }

    function overlap(run) {
        var comm = run.curves.comm_s, exposed;
        if (!comm)
            return null;
        exposed = reader(run.curves.comm_exposed_s);
        return combined(comm, function (i) {
            if (!(comm.y[i] > 0))
                return NaN;
            return 100 * Math.max(0, 1 - exposed(comm.x[i]) / comm.y[i]);
        });
    }

    function plots() {
        var names = namesOf(), done = {}, loss, scores;
        function take(name) {
            done["=" + name] = true;
            return lines(name, name);
        }
        loss = names.filter(function (name) { return /(^|\/|_)loss$/.test(name); })
            .reduce(function (all, name) { return all.concat(take(name)); }, []);
        plot("loss", "Loss", loss, {log: true});
        scores = names.filter(function (name) {
            return /^valid\//.test(name) && !done["=" + name];
        });
        scores.forEach(function (name, i) {
            plot("valid" + (i || ""), "Evaluation: " + name.slice(6), take(name));
        });
        plot("lr", "Learning rate", take("lr"), {log: true});
        plot("norm", "Norm of the gradients", take("grad_norm"), {log: true});
        plot("speed", "Throughput", take("samples_per_s"),
             {unit: "samples/s", zero: true});
        runs.forEach(stack);
        plot("overlap", "Overlap: communication hidden behind backward",
             runs.map(function (run) {
                 return {name: runs.length > 1 ? run.name : "overlap",
                         curve: overlap(run)};
             }), {unit: "%", zero: true});
        PARTS.concat([["step_s"], ["comm_s"]]).forEach(function (part) {
            done["=" + part[0]] = true;
        });
        names.forEach(function (name, i) {
            if (!done["=" + name])
                plot("other" + i, name, take(name));
        });
    }

    function bar() {
        var box, log, smooth;
        if (graphs.length === 0) {
            if (typeof Dygraph === "undefined")
                add(page, "p", "No plots: cddp was built without dygraphs " +
                    "(libjs-dygraphs).", {"class": "note"});
            return;
        }
        box = add(page, "div", null, {"class": "bar"});
        log = add(add(box, "label", "log scale "), "input", null,
                  {type: "checkbox", id: "log"});
        smooth = add(add(box, "label", "smoothing, points "), "input", null,
                     {type: "number", id: "smooth", min: 1, max: 1000, value: 1});
        add(box, "span", "Zoom: drag. Back: double click. Bands: least and " +
            "most of the steps of a point.");
        page.insertBefore(box, page.children[1]);
        log.addEventListener("change", function () {
            graphs.forEach(function (one) {
                if (one.log)
                    one.graph.updateOptions({logscale: log.checked});
            });
        });
        smooth.addEventListener("change", function () {
            var width = Math.max(1, Math.floor(+smooth.value) || 1);
            graphs.forEach(function (one) { one.graph.adjustRoll(width); });
        });
    }

    /* ---- the history of a run --------------------------------------------- */

    var KINDS = {fault: "#d1495b", rollback: "#b7791f", signal: "#7b4fa3",
                 resumed: "#008b8b", requeue: "#6b6b6b"};

    /* The starts of a run: {from, to, status}, in milliseconds. */
    function startsOf(run) {
        var out = [], now = null, last = Date.parse(run.about.time);
        run.about.lives.forEach(function (line) {
            var at = Date.parse(line.time);
            if (isNaN(at))
                return;
            if (line.event === "begin") {
                now = {from: at, to: at, status: null};
                out.push(now);
            } else if (now && line.event !== "requeue") {
                now.to = Math.max(now.to, at);
                if (line.event === "end")
                    now.status = line.status;
            }
        });
        if (now && now.status === null && last > now.to)
            now.to = last;
        return out;
    }

    function svg(parent, tag, attributes, title) {
        var node = document.createElementNS("http://www.w3.org/2000/svg", tag);
        Object.keys(attributes).forEach(function (key) {
            node.setAttribute(key, attributes[key]);
        });
        if (title) {
            parent.appendChild(node);
            var tip = document.createElementNS(node.namespaceURI, "title");
            tip.textContent = title;
            node.appendChild(tip);
        }
        parent.appendChild(node);
        return node;
    }

    function lives(run, index) {
        var starts = startsOf(run), box, from, to, scale;
        if (starts.length === 0)
            return;
        add(page, "h2", "Starts, saves and faults: " + run.name);
        box = svg(add(page, "div", null, {id: "lives" + (index || "")}), "svg",
                  {viewBox: "0 0 1000 70", width: "100%"});
        from = starts[0].from;
        to = Math.max.apply(null, starts.map(function (s) { return s.to; }));
        scale = function (at) {
            return 5 + 990 * (at - from) / Math.max(to - from, 1);
        };
        starts.forEach(function (start, i) {
            svg(box, "rect", {x: scale(start.from), y: 22, height: 22,
                width: Math.max(scale(start.to) - scale(start.from), 2),
                fill: start.status === 0 ? "#9cc79f" :
                      start.status === null ? "#c9d3e6" : "#e6c3b8"},
                "start " + (i + 1) + ": " + new Date(start.from).toISOString() +
                ", " + duration((start.to - start.from) / 1000) +
                (start.status === null ? "" : ", status " + start.status));
        });
        run.about.saves.forEach(function (save) {
            svg(box, "rect", {x: scale(Date.parse(save[0])) - 0.75, y: 44,
                width: 1.5, height: 8, fill: "#2e933c"},
                "checkpoint of step " + save[1] + ", " + save[0]);
        });
        run.about.lives.forEach(function (line) {
            if (KINDS[line.event] === undefined)
                return;
            svg(box, "rect", {x: scale(Date.parse(line.time)) - 1.5, y: 8,
                width: 3, height: 14, fill: KINDS[line.event]},
                line.event + ", " + line.time + " " + line.detail);
        });
        svg(box, "text", {x: 5, y: 66, "font-size": 11}).textContent =
            new Date(from).toISOString();
        svg(box, "text", {x: 995, y: 66, "font-size": 11,
            "text-anchor": "end"}).textContent = new Date(to).toISOString();
        table(page, "history" + (index || ""),
              ["time (UTC)", "event", "step", "job", "status", "host", "detail"],
              run.about.lives.map(function (line) {
                  return [line.time, line.event, line.step < 0 ? "" : line.step,
                          line.step_id || line.job,
                          line.status < 0 ? "" : line.status,
                          line.culprit < 0 ? line.host :
                              "rank " + line.culprit + " " + line.host,
                          line.detail];
              }));
    }

    /* What the time of the run was spent on. */
    function spent(run, index) {
        var about = run.about, kinds, total = 0;
        kinds = (about.summary || {}).spent || about.spent;
        if (typeof kinds !== "object" || kinds === null)
            return;
        kinds = Object.keys(kinds).filter(function (key) {
            return key !== "wall" && kinds[key] > 0;
        }).map(function (key) {
            total += kinds[key];
            return [key, kinds[key]];
        });
        if (total <= 0)
            return;
        kinds.sort(function (a, b) { return b[1] - a[1]; });
        add(page, "h2", "What the time was spent on: " + run.name);
        table(page, "spent" + (index || ""), ["kind", "time", "share"],
              kinds.map(function (kind) {
                  return [kind[0].replace(/_/g, " "), duration(kind[1]),
                          (100 * kind[1] / total).toFixed(1) + " %"];
              }));
    }

    /* Rows of metrics.jsonl that are neither steps, evaluations nor
     * checkpoints. If some name a rank, also how often each one is named. */
    function events(run, index) {
        var rows = run.about.events.filter(function (row) {
            return row.event !== "resume";
        });
        if (rows.length === 0)
            return;
        heat(run, rows, index);
        add(page, "h2", "Events: " + run.name);
        table(page, "events" + (index || ""), ["time (UTC)", "event", "step", ""],
              rows.map(function (row) {
                  var rest = Object.keys(row).filter(function (key) {
                      return ["time", "event", "step", "epoch"].indexOf(key) < 0;
                  }).map(function (key) { return key + " " + short(row[key]); });
                  return [row.time, row.event, row.step, rest.join(", ")];
              }));
    }

    /* The colour for a rank that needs [times] what the median rank needs. */
    function color(times) {
        var depth = Math.log(times > 0 ? times : 1e-9) / Math.log(1.5);
        depth = Math.max(-1, Math.min(1, depth));
        return (depth < 0 ? "rgba(48,102,190," : "rgba(209,73,91,") +
            (0.85 * Math.abs(depth)).toFixed(2) + ")";
    }

    function milliseconds(seconds) {
        return short(+(1000 * seconds).toPrecision(4)) + " ms";
    }

    /* The text about one rank on [host]. [one] is a list of report/loads.h. */
    function rankText(host, one) {
        return "rank " + one[1] + " on " + host + ": " +
            milliseconds(one[5] + one[6]) + " of a step for itself, " +
            one[3].toFixed(2) + " times the median (at most " +
            one[4].toFixed(2) + " times); waiting for data " +
            milliseconds(one[5]) + ", computing " + milliseconds(one[6]) +
            ", waiting for others " + milliseconds(one[7]) + "; throttled " +
            milliseconds(one[8]) + ", ready without a core " +
            milliseconds(one[9]) + "; " + one[2] + " steps";
    }

    function scaleOf(parent) {
        var scale = add(parent, "p", "times the median of the ranks: ");
        [0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5].forEach(function (times, i) {
            add(scale, "span", (i === 0 ? "\u2264 " : i === 6 ? "\u2265 " : "") +
                times, {"class": "shade", style: "background: " + color(times)});
        });
    }

    /* Draw what each rank of each host needed for itself, divided by what the
     * median rank needed, over the whole run. */
    function ranks(run, index) {
        var loads = run.about.loads, hosts = {}, out;
        var size = (run.about.summary || {}).world_size || run.about.world_size;
        if (!loads) {
            if (size > 1)
                add(page, "p", run.name + ": the ranks were not compared. A run " +
                    "compares them when it has made steps for 10 s, and then " +
                    "every obs.every.",
                    {id: "alone" + (index || "")});
            return;
        }
        loads.ranks.forEach(function (one) {
            var name = loads.hosts[one[0]];
            (hosts["=" + name] = hosts["=" + name] || []).push(one);
        });
        add(page, "h2", "What each rank needed for itself in a step " +
            "(data and computing): " + run.name);
        scaleOf(page);
        out = add(add(page, "div", null, {"class": "scroll"}), "table", null,
                  {"class": "heat ranks", id: "ranks" + (index || "")});
        Object.keys(hosts).sort(function (a, b) {
            return a.localeCompare(b, "en", {numeric: true});
        }).forEach(function (key) {
            var line = add(out, "tr");
            add(line, "th", key.slice(1));
            hosts[key].sort(function (a, b) {
                return a[1] - b[1];
            }).forEach(function (one) {
                add(line, "td", one[3].toFixed(2),
                    {style: "background: " + color(one[3]),
                     title: rankText(key.slice(1), one)});
            });
        });
        add(page, "p", "Each cell is a rank. Move the mouse to a cell to see " +
            "its numbers. All ranks wait for the slowest one in each step.");
    }

    /* A line for each host with its ranks, the darker the more often they were
     * named; an event without a rank is about the whole host. */
    function heat(run, rows, index) {
        var hosts = {}, most = 0, out;
        rows.forEach(function (row) {
            var host, cell, cause;
            if (row.rank === undefined && row.host === undefined)
                return;
            host = row.host === undefined ? "?" : short(row.host);
            hosts["=" + host] = hosts["=" + host] || {};
            cell = row.rank === undefined ? "all ranks" : "rank " + short(row.rank);
            hosts["=" + host][cell] = hosts["=" + host][cell] ||
                {count: 0, causes: {}};
            cell = hosts["=" + host][cell];
            cause = row.cause === undefined ? row.event : row.cause;
            cell.causes["=" + cause] = (cell.causes["=" + cause] || 0) + 1;
            most = Math.max(most, ++cell.count);
        });
        if (most === 0)
            return;
        add(page, "h2", "How often ranks were named in events: " + run.name);
        out = add(page, "table", null,
                  {"class": "heat", id: "heat" + (index || "")});
        Object.keys(hosts).sort().forEach(function (host) {
            var line = add(out, "tr");
            add(line, "th", "host " + host.slice(1));
            Object.keys(hosts[host]).sort().forEach(function (name) {
                var cell = hosts[host][name];
                add(line, "td", name + ": " +
                    Object.keys(cell.causes).map(function (cause) {
                        return cell.causes[cause] + " x " + cause.slice(1);
                    }).join(", "),
                    {style: "background: rgba(209,73,91," +
                        (0.1 + 0.7 * cell.count / most).toFixed(2) + ")"});
            });
        });
    }

    /* ---- settings --------------------------------------------------------- */

    function differences() {
        var all = {}, rows = [];
        if (runs.length < 2)
            return;
        runs.forEach(function (run) {
            Object.keys(run.about.settings).forEach(function (key) {
                all[key] = true;
            });
        });
        Object.keys(all).sort().forEach(function (key) {
            var values = runs.map(function (run) {
                var value = run.about.settings[key];
                return value === undefined ? "" : value;
            });
            if (values.some(function (value) { return value !== values[0]; }))
                rows.push([key].concat(values));
        });
        add(page, "h2", "Keys in which the runs differ");
        table(page, "differ", ["key"].concat(runs.map(function (run) {
            return run.name;
        })), rows);
    }

    function overview() {
        add(page, "h1", runs.length > 1 ? runs.length + " runs" : runs[0].name);
        document.title = "cddp: " + runs.map(function (run) {
            return run.name;
        }).join(", ");
        table(page, "runs", ["run", "state", "step", "best evaluation", "ranks",
                             "from (UTC)", "last row", "directory"],
              runs.map(function (run) {
                  var about = run.about, best = about.best;
                  return [run.name,
                          about.state + (about.why ? ": " + about.why : ""),
                          about.step < 0 ? "-" : about.step,
                          best ? best.name + " " + short(best.value) +
                              " at step " + best.step : "-",
                          short((about.summary || {}).world_size ||
                                about.world_size),
                          about.begun, about.time, about.dir];
              }));
        runs.forEach(function (run) {
            run.about.notes.forEach(function (note) {
                add(page, "p", (runs.length > 1 ? run.name + ": " : "") + note,
                    {"class": "note"});
            });
        });
    }

    function settings(run, index) {
        add(page, "h2", "Run file: " + run.name);
        add(page, "pre", run.about.config === undefined ? "-" : run.about.config,
            {id: "config" + (index || "")});
        add(page, "p", "Versions: " + (run.about.versions ||
            "not known, as there is no checkpoint"),
            {id: "versions" + (index || "")});
    }

    nameRuns();
    overview();
    differences();
    plots();
    bar();
    runs.forEach(spent);
    runs.forEach(lives);
    runs.forEach(ranks);
    runs.forEach(events);
    runs.forEach(settings);
    document.documentElement.setAttribute("data-drawn", graphs.length);
}());
