import java.io.File;
import java.io.FileWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.IterationParams;
import org.openjdk.jmh.profile.ExternalProfiler;
import org.openjdk.jmh.profile.InternalProfiler;
import org.openjdk.jmh.profile.ProfilerException;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.BenchmarkResult;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ScalarResult;
import org.openjdk.jmh.runner.IterationType;

/**
 * A JMH profiler: exact instructions per operation, by livepro.
 *
 * <pre>
 * java -jar benchmarks.jar -prof livepro
 * java -jar benchmarks.jar -prof "livepro:tier=c2;csv=counts.csv"
 * </pre>
 *
 * Put this file and Livepro.java among the benchmarks' sources, in the unnamed package
 * (<code>livepro api --jmh src/main/java</code>): JMH finds a profiler by its class's name. It fits JMH 1.35
 * and newer, and needs JDK 11.
 *
 * In the JVM that starts the benchmarks it is an external profiler, which puts <code>livepro run</code> in
 * front of the forked JVM. In the forked JVM it is an internal one, which has livepro count during measured
 * iterations only: nothing that warm-up executes is in the counts.
 *
 * Options, separated by semicolons: <code>tier=LIST</code> counts only what was compiled in these tiers (c1,
 * c2, 1 to 4); <code>csv=FILE</code> appends every figure; <code>json=DIR</code> keeps livepro's reports;
 * <code>livepro=PATH</code> is the program, if it is not on the PATH.
 */
public final class livepro implements ExternalProfiler, InternalProfiler {
    private final Map<String, String> options;
    private final String program;
    private Path report;
    private int forks;
    private int measured;

    /** A profiler with options as JMH hands them on. */
    public livepro(String line) throws ProfilerException {
        options = parse(line);
        program = find(options.get("livepro"));
    }

    @Override
    public String getDescription() {
        return "livepro: exact instructions and SIMD instructions per operation, by compiler";
    }

    // -- in the JVM that starts the benchmarks

    @Override
    public Collection<String> addJVMInvokeOptions(BenchmarkParams params) {
        try {
            String keep = options.get("json");
            if (keep == null) {
                report = Files.createTempFile("livepro", ".json");
            } else {
                Path directory = Files.createDirectories(Path.of(keep));
                report = directory.resolve(params.id().replaceAll("[^\\w.-]", "_") + "-" + forks++ + ".json");
            }
        } catch (IOException error) {
            throw new IllegalStateException("livepro's report cannot be written: " + error, error);
        }
        List<String> command = new ArrayList<>(List.of(program, "run", "--quiet", "--no-code"));
        if (options.containsKey("tier")) {
            command.addAll(List.of("--tier", options.get("tier")));
        }
        command.addAll(List.of("--json", report.toString(), "--"));
        return command;
    }

    @Override
    public Collection<String> addJVMOptions(BenchmarkParams params) {
        return Collections.emptyList();
    }

    @Override
    public void beforeTrial(BenchmarkParams params) {
        // there is nothing to prepare
    }

    @Override
    public Collection<? extends Result> afterTrial(BenchmarkResult result, long pid, File out, File err) {
        try {
            String text = Files.readString(report, StandardCharsets.UTF_8);
            if (!options.containsKey("json")) {
                Files.deleteIfExists(report);
            }
            long operations = result.getMetadata() == null ? 0 : result.getMetadata().getMeasurementOps();
            if (operations == 0) {
                return Collections.emptyList();
            }
            List<Figure> figures = figures((Map<?, ?>) new Json(text).value(), operations);
            if (options.containsKey("csv")) {
                append(result.getParams().id(), operations, figures);
            }
            List<Result> results = new ArrayList<>();
            for (Figure figure : figures) {
                results.add(new ScalarResult(figure.label, figure.value, figure.unit, AggregationPolicy.AVG));
            }
            return results;
        } catch (IOException | RuntimeException error) {
            System.err.println("livepro's counts cannot be read: " + error);
            return Collections.emptyList();
        }
    }

    @Override
    public boolean allowPrintOut() {
        return true;
    }

    @Override
    public boolean allowPrintErr() {
        return true;
    }

    // -- in the forked JVM

    @Override
    public void beforeIteration(BenchmarkParams params, IterationParams iteration) {
        if (iteration.getType() == IterationType.MEASUREMENT) {
            if (measured++ == 0) {
                Livepro.reset();
            } else {
                Livepro.resume();
            }
        }
    }

    @Override
    public Collection<? extends Result> afterIteration(
            BenchmarkParams params, IterationParams iteration, IterationResult result) {
        if (iteration.getType() == IterationType.MEASUREMENT) {
            Livepro.pause();
            Livepro.snapshot("iteration " + measured);
        }
        return Collections.emptyList();
    }

    // -- the figures

    private static final class Figure {
        final String label;
        final double value;
        final String unit;

        Figure(String label, double value, String unit) {
            this.label = label;
            this.value = value;
            this.unit = unit;
        }
    }

    /** What a report says, per operation. */
    private static List<Figure> figures(Map<?, ?> report, long operations) {
        double whole = number(report.get("instructions"));
        Map<String, Double> sets = new LinkedHashMap<>();
        Map<String, Double> makers = new LinkedHashMap<>();
        double simd = 0;
        for (Object process : (List<?>) report.get("processes")) {
            for (Object entry : (List<?>) ((Map<?, ?>) process).get("origins")) {
                Map<?, ?> row = (Map<?, ?>) entry;
                makers.merge((String) row.get("origin"), number(row.get("instructions")), Double::sum);
            }
            for (Object thread : (List<?>) ((Map<?, ?>) process).get("threads")) {
                for (Object entry : (List<?>) ((Map<?, ?>) thread).get("simd")) {
                    Map<?, ?> row = (Map<?, ?>) entry;
                    double count = number(row.get("count"));
                    simd += count;
                    sets.merge(row.get("set") + ":" + width(row), count, Double::sum);
                }
            }
        }
        List<Figure> out = new ArrayList<>();
        out.add(new Figure("livepro:instructions", whole / operations, "#/op"));
        out.add(new Figure("livepro:SIMD", simd / operations, "#/op"));
        for (Map.Entry<String, Double> set : descending(sets)) {
            out.add(new Figure("livepro:SIMD:" + set.getKey(), set.getValue() / operations, "#/op"));
        }
        for (Map.Entry<String, Double> maker : descending(makers)) {
            out.add(new Figure("livepro:" + maker.getKey(), 100 * maker.getValue() / whole, "%"));
        }
        return out;
    }

    private static String width(Map<?, ?> row) {
        long bits = (long) number(row.get("width"));
        return Boolean.TRUE.equals(row.get("scalar")) ? "scalar" : bits == 0 ? "other" : Long.toString(bits);
    }

    private static List<Map.Entry<String, Double>> descending(Map<String, Double> counts) {
        List<Map.Entry<String, Double>> out = new ArrayList<>(counts.entrySet());
        out.removeIf(entry -> entry.getValue() == 0);
        out.sort(Map.Entry.<String, Double>comparingByValue().reversed());
        return out;
    }

    private static double number(Object value) {
        return ((Number) value).doubleValue();
    }

    private void append(String benchmark, long operations, List<Figure> figures) throws IOException {
        File file = new File(options.get("csv"));
        boolean fresh = file.length() == 0;
        try (FileWriter writer = new FileWriter(file, StandardCharsets.UTF_8, true)) {
            if (fresh) {
                writer.write("benchmark,operations,metric,value,unit\n");
            }
            for (Figure figure : figures) {
                String name = '"' + benchmark.replace("\"", "\"\"") + '"';
                writer.write(String.format(
                        Locale.ROOT, "%s,%d,%s,%s,%s%n", name, operations, figure.label, figure.value, figure.unit));
            }
        }
    }

    // -- options

    private static Map<String, String> parse(String line) throws ProfilerException {
        Map<String, String> out = new LinkedHashMap<>();
        List<String> known = List.of("tier", "csv", "json", "livepro");
        for (String option : line == null ? new String[0] : line.split(";")) {
            if (option.isBlank()) {
                continue;
            }
            int at = option.indexOf('=');
            String name = at < 0 ? option.trim() : option.substring(0, at).trim();
            if (at < 0 || !known.contains(name)) {
                throw new ProfilerException(
                        "livepro has no option '" + option + "'. Its options are tier=LIST (c1, c2, 1 to 4), csv=FILE, "
                                + "json=DIR and livepro=PATH, separated by semicolons.");
            }
            out.put(name, option.substring(at + 1).trim());
        }
        return out;
    }

    /** The program. Nothing is started to find it: in the forked JVM that would be measured. */
    private static String find(String given) throws ProfilerException {
        if (given != null) {
            return given;
        }
        String path = System.getenv("PATH");
        for (String directory : path == null ? new String[0] : path.split(File.pathSeparator)) {
            File file = new File(directory, "livepro");
            if (file.isFile() && file.canExecute()) {
                return file.getPath();
            }
        }
        throw new ProfilerException(
                "There is no livepro on the PATH. Install it, or name it: -prof \"livepro:livepro=/path/to/livepro\".");
    }

    /** Reads JSON, which the JDK does not: maps, lists, strings, numbers, Boolean and null. */
    private static final class Json {
        private final String text;
        private int at;

        Json(String text) {
            this.text = text;
        }

        Object value() {
            switch (next()) {
                case '{':
                    return object();
                case '[':
                    return array();
                case '"':
                    return string();
                default:
                    return word();
            }
        }

        private char next() {
            while (Character.isWhitespace(text.charAt(at))) {
                at++;
            }
            return text.charAt(at);
        }

        private Map<String, Object> object() {
            Map<String, Object> out = new LinkedHashMap<>();
            at++;
            while (next() != '}') {
                String key = string();
                next();
                at++; // the colon
                out.put(key, value());
                if (next() == ',') {
                    at++;
                    next();
                }
            }
            at++;
            return out;
        }

        private List<Object> array() {
            List<Object> out = new ArrayList<>();
            at++;
            while (next() != ']') {
                out.add(value());
                if (next() == ',') {
                    at++;
                }
            }
            at++;
            return out;
        }

        private String string() {
            StringBuilder out = new StringBuilder();
            for (at++; text.charAt(at) != '"'; at++) {
                char c = text.charAt(at);
                if (c != '\\') {
                    out.append(c);
                    continue;
                }
                char escaped = text.charAt(++at);
                int plain = "bfnrt".indexOf(escaped);
                if (escaped == 'u') {
                    out.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
                    at += 4;
                } else {
                    out.append(plain < 0 ? escaped : "\b\f\n\r\t".charAt(plain));
                }
            }
            at++;
            return out.toString();
        }

        private Object word() {
            int from = at;
            while (at < text.length() && "{}[],:\" \t\r\n".indexOf(text.charAt(at)) < 0) {
                at++;
            }
            String word = text.substring(from, at);
            switch (word) {
                case "true":
                    return Boolean.TRUE;
                case "false":
                    return Boolean.FALSE;
                case "null":
                    return null;
                default:
                    return Double.valueOf(word);
            }
        }
    }
}
